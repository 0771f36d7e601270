package template

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// functions are those that templates have. Each takes an argument at least; apply checks their
// types. None calls what is in a value.
var functions = map[string]any{
	"default": func(other, value any) any {
		if value == nil || reflect.ValueOf(value).IsZero() {
			return other
		}
		return value
	},
	"join": func(separator string, list []string) string { return strings.Join(list, separator) },
	"indent": func(spaces int, text string) (string, error) {
		const most = 64
		if spaces < 0 || spaces > most {
			return "", fmt.Errorf("use 0 to %d spaces", most)
		}
		pad := strings.Repeat(" ", spaces)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
	},
	"b64enc":        func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
	"semverCompare": compareVersions,
	// The others are text/template's.
	"and": lastOf,
	"or":  lastOf,
	"not": func(value any) bool { return !isTrue(value) },
	"eq":  isEqualToAny,
	"ne":  func(a, b any) (bool, error) { equal, err := isEqual(a, b); return !equal, err },
	"lt":  isLess,
	"le":  isLessOrEqual,
	"gt":  func(a, b any) (bool, error) { less, err := isLessOrEqual(a, b); return !less, err },
	"ge":  func(a, b any) (bool, error) { less, err := isLess(a, b); return !less, err },
	"len": func(value any) (int, error) {
		switch v := reflect.ValueOf(value); v.Kind() {
		case reflect.String, reflect.Slice, reflect.Map:
			return v.Len(), nil
		}
		return 0, fmt.Errorf("len of type %T", value)
	},
	"index": index,
}

// lazy functions return the first argument that is as true as is said here, and evaluate none
// behind it.
var lazy = map[string]bool{"and": false, "or": true}

func lastOf(first any, others ...any) any { return append([]any{first}, others...)[len(others)] }

// apply calls a function, if the arguments are as many as its parameters and have their types.
func apply(function any, arguments []any) (any, error) {
	f := reflect.ValueOf(function)
	want, last := f.Type().NumIn(), f.Type().NumIn()-1
	if len(arguments) != want && (!f.Type().IsVariadic() || len(arguments) < last) {
		return nil, fmt.Errorf("wrong number of args: want %d got %d", want, len(arguments))
	}
	in := make([]reflect.Value, len(arguments))
	for i, argument := range arguments {
		parameter := f.Type().In(min(i, last))
		if i >= last && f.Type().IsVariadic() {
			parameter = parameter.Elem()
		}
		v := reflect.ValueOf(argument)
		if argument == nil && (parameter.Kind() == reflect.Interface || parameter.Kind() == reflect.Slice) {
			v = reflect.Zero(parameter)
		}
		if !v.IsValid() || !v.Type().AssignableTo(parameter) {
			return nil, fmt.Errorf("wrong type for value; expected %s; got %T", parameter, argument)
		}
		in[i] = v
	}
	results := f.Call(in)
	err, _ := reflect.TypeAssert[error](results[len(results)-1])
	return results[0].Interface(), err
}

// compareVersions compares a version as ">=1.35.0" says: by >=, >, <=, <, = or !=.
func compareVersions(constraint, text string) (bool, error) {
	// Errors of the parser tell what they have parsed.
	v, err := version.ParseGeneric(text)
	if err != nil {
		return false, errors.New("the second argument is no version")
	}
	constraint = strings.TrimSpace(constraint)
	number := strings.TrimLeft(constraint, "<>=!")
	to, err := version.ParseGeneric(strings.TrimSpace(number))
	if err != nil {
		return false, errConstraint
	}
	switch strings.TrimSuffix(constraint, number) {
	case ">=":
		return v.AtLeast(to), nil
	case ">":
		return to.LessThan(v), nil
	case "<=":
		return to.AtLeast(v), nil
	case "<":
		return v.LessThan(to), nil
	case "=", "":
		return v.EqualTo(to), nil
	case "!=":
		return !v.EqualTo(to), nil
	}
	return false, errConstraint
}

var errConstraint = errors.New("the first argument must be >=, >, <=, <, = or != and a version")
