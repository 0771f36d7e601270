package sdk

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const redacted = "[redacted]"

// Redacted returns a message in a form that may be logged: fields marked debug_redact are replaced, and of any other
// bytes only their number is told. It is the only way in which this package logs a message; no Go printer honours
// debug_redact. What is not a message is told by its type. The work is done only if the value is really logged.
func Redacted(message any) slog.LogValuer { return redactor{message} }

type redactor struct{ message any }

// LogValue implements slog.LogValuer.
func (r redactor) LogValue() slog.Value {
	m, ok := r.message.(proto.Message)
	if !ok {
		return slog.StringValue(fmt.Sprintf("%T", r.message))
	}
	return slog.AnyValue(visible(m.ProtoReflect()))
}

// visible returns the fields that are set, by name.
func visible(m protoreflect.Message) map[string]any {
	fields := map[string]any{}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		fields[field.TextName()] = visibleField(field, value)
		return true
	})
	return fields
}

func visibleField(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	if options, ok := field.Options().(*descriptorpb.FieldOptions); ok && options.GetDebugRedact() {
		return redacted
	}
	switch {
	case field.IsMap():
		entries := map[string]any{}
		value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			entries[key.String()] = visibleValue(field.MapValue(), v)
			return true
		})
		return entries
	case field.IsList():
		items := make([]any, 0, value.List().Len())
		for i := range value.List().Len() {
			items = append(items, visibleValue(field, value.List().Get(i)))
		}
		return items
	}
	return visibleValue(field, value)
}

func visibleValue(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return visible(value.Message())
	case protoreflect.BytesKind:
		return fmt.Sprintf("[%d bytes]", len(value.Bytes()))
	case protoreflect.EnumKind:
		if v := field.Enum().Values().ByNumber(value.Enum()); v != nil {
			return string(v.Name())
		}
		return int32(value.Enum())
	default:
		return value.Interface()
	}
}

// minSecret is the shortest secret that is looked for in errors: shorter ones would be found everywhere.
const minSecret = 6

// scrub takes the request's secrets out of an error that a cloud's or a driver's careless words put them into: out of the
// message; and a detail that holds one is left out.
func scrub(s *status.Status, request any) *status.Status {
	r, ok := request.(interface {
		GetProvider() *driverv1alpha1.ProviderContext
	})
	if !ok {
		return s
	}
	clean := s.Proto()
	for _, secret := range r.GetProvider().GetSecrets() {
		if len(secret) < minSecret {
			continue
		}
		for _, form := range forms(secret) {
			clean.Message = strings.ReplaceAll(clean.GetMessage(), form, redacted)
			clean.Details = slices.DeleteFunc(clean.GetDetails(), func(detail *anypb.Any) bool {
				return bytes.Contains(detail.GetValue(), []byte(form))
			})
		}
	}
	return status.FromProto(clean)
}

// forms are the ways in which a secret gets into a text.
func forms(secret []byte) []string {
	text := string(secret)
	return []string{
		text, unquoted(strconv.Quote(text)), unquoted(asJSON(text)),
		base64.StdEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret),
		hex.EncodeToString(secret), url.QueryEscape(text), url.PathEscape(text),
	}
}

// asJSON is text as encoding/json writes it, which escapes more than Go does.
func asJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return strconv.Quote(text)
	}
	return string(quoted)
}

func unquoted(text string) string { return text[1 : len(text)-1] }
