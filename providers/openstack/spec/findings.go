package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// finding is what is wrong with a field. It holds no value of a field that may come from a Secret.
type finding struct {
	field, description string
	// open: a Secret that is not here yet may settle it.
	open bool
	// elsewhere: what has to change is a Secret, or the driver's environment.
	elsewhere bool
}

type findings []finding

// add notes what the request alone proves wrong.
func (f *findings) add(field, format string, args ...any) {
	*f = append(*f, finding{field: field, description: fmt.Sprintf(format, args...)})
}

// suspect notes what is wrong unless a Secret says otherwise.
func (f *findings) suspect(field, description string) {
	*f = append(*f, finding{field: field, description: description, open: true, elsewhere: true})
}

// addSecret notes what is wrong with a Secret.
func (f *findings) addSecret(field, format string, args ...any) {
	*f = append(*f, finding{field: field, description: fmt.Sprintf(format, args...), elsewhere: true})
}

// sorted returns them in the order of their fields: what is told twice is told alike.
func (f findings) sorted() findings {
	sorted := slices.Clone(f)
	slices.SortStableFunc(sorted, func(a, b finding) int { return cmp.Compare(a.field, b.field) })
	return slices.Compact(sorted)
}

// Error lists them.
func (f findings) Error() string {
	parts := make([]string, 0, len(f))
	for _, one := range f.sorted() {
		parts = append(parts, one.field+": "+one.description)
	}
	return strings.Join(parts, "; ")
}

// invalid returns an error with every field that is wrong; nil where none is. It is SPEC_INVALID,
// which is final for a spec, unless all of it can be mended without the spec: CREDENTIALS_INVALID
// is tried again.
func (f findings) invalid() error {
	if len(f) == 0 {
		return nil
	}
	var fields []sdk.ErrorOption
	for _, one := range f.sorted() {
		fields = append(fields, sdk.WithField(one.field, one.description))
	}
	reason := driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID
	if slices.ContainsFunc(f, func(one finding) bool { return !one.elsewhere }) {
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	}
	return sdk.NewError(reason, f.Error(), fields...)
}

// proven returns those that no Secret can settle.
func (f findings) proven() []*driverv1alpha1.FieldViolation {
	var all []*driverv1alpha1.FieldViolation
	for _, one := range f.sorted() {
		if !one.open {
			all = append(all, &driverv1alpha1.FieldViolation{Field: one.field, Description: one.description})
		}
	}
	return all
}

// element returns the path of a list's element.
func element(list string, index int) string {
	return list + "[" + strconv.Itoa(index) + "]"
}

// below returns the path of a key in the object at path, as the contract writes it.
func below(path, key string) string {
	if key != "" && !strings.ContainsAny(key, `.[]"`) {
		return path + "." + key
	}
	quoted, _ := json.Marshal(key) // a string cannot fail
	return path + "[" + string(quoted) + "]"
}
