package template

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"
)

// isTrue says whether a value is anything but false, zero, empty or nil.
func isTrue(value any) bool {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() > 0
	}
	return v.IsValid() && !v.IsZero()
}

// lengthOf is how long the texts, lists and maps among the values are together.
func lengthOf(values ...any) (length int) {
	for _, value := range values {
		switch v := reflect.ValueOf(value); v.Kind() {
		case reflect.String, reflect.Slice, reflect.Map:
			length += v.Len()
		}
	}
	return length
}

// number is the value of a literal, whose type is seen from how it is written. It is nil for an
// integer that is too large.
func number(n *parse.NumberNode) any {
	isHex := strings.HasPrefix(n.Text, "0x") || strings.HasPrefix(n.Text, "0X")
	isFloat := strings.ContainsAny(n.Text, "pP") || strings.ContainsAny(n.Text, ".eE") && !isHex
	switch {
	case n.IsComplex:
		return n.Complex128
	case isFloat && n.Text[0] != '\'':
		return n.Float64
	case n.IsInt:
		return int(n.Int64)
	}
	return nil
}

// lookup returns what a map has under a key: the zero value of its items if it has no such key.
func lookup(value any, key string) (item any, isMap, has bool) {
	switch m := value.(type) {
	case map[string]any:
		item, has = m[key]
		return item, true, has
	case map[string]string:
		item, has = m[key]
		return item, true, has
	}
	return nil, false, false
}

// index follows keys into maps, and numbers into lists and the bytes of texts.
func index(item any, keys ...any) (any, error) {
	if item == nil {
		return nil, errors.New("index of nil")
	}
	for _, key := range keys {
		text, isText := key.(string)
		next, isMap, _ := lookup(item, text)
		if isMap && isText {
			item = next
			continue
		}
		list := reflect.ValueOf(item)
		i, isInt := basic(key).(int64)
		if list.Kind() != reflect.Slice && list.Kind() != reflect.String || !isInt {
			return nil, fmt.Errorf("can't index item of type %T with type %T", item, key)
		}
		if i < 0 || i >= int64(list.Len()) {
			return nil, errors.New("index out of range")
		}
		item = list.Index(int(i)).Interface()
	}
	return item, nil
}

// itemsOf are the keys and values that a range with so many variables is over, keys in order.
func itemsOf(value any, variables int) (iter.Seq2[any, any], error) {
	v := reflect.ValueOf(value)
	switch {
	case value == nil:
		return func(func(key, item any) bool) {}, nil
	case v.Kind() == reflect.Map:
		keys := slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		return func(yield func(key, item any) bool) {
			for i := 0; i < len(keys) && yield(keys[i].Interface(), v.MapIndex(keys[i]).Interface()); i++ {
			}
		}, nil
	case v.Kind() == reflect.Slice:
		return func(yield func(key, item any) bool) {
			for i := 0; i < v.Len() && yield(i, v.Index(i).Interface()); i++ {
			}
		}, nil
	case (v.CanInt() || v.CanUint()) && variables < 2:
		return func(yield func(key, item any) bool) {
			v.Seq()(func(i reflect.Value) bool { return yield(nil, i.Interface()) })
		}, nil
	}
	return nil, fmt.Errorf("range can't iterate over type %T", value)
}

// basic is a number, text or truth value by its kind: int64, float64, complex128, string or bool.
// It is nil for others.
func basic(value any) any {
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return v.Int()
	case v.CanUint(): // a byte of a text
		return int64(v.Uint())
	case v.CanFloat():
		return v.Float()
	case v.CanComplex():
		return v.Complex()
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	}
	return nil
}

// isEqualToAny says whether the first value is equal to one of the others.
func isEqualToAny(value any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("missing argument for comparison")
	}
	for _, other := range others {
		if equal, err := isEqual(value, other); equal || err != nil {
			return equal, err
		}
	}
	return false, nil
}

// isEqual compares values of one kind. Maps and lists can be compared with nil alone.
func isEqual(a, b any) (bool, error) {
	x, y := basic(a), basic(b)
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	switch {
	case x != nil && reflect.TypeOf(x) == reflect.TypeOf(y):
		return x == y, nil
	case a == nil, b == nil, v.Kind() == w.Kind() && (isNil(v) || isNil(w)):
		return isNil(v) && isNil(w), nil
	}
	return false, fmt.Errorf("incompatible types for comparison: %T and %T", a, b)
}

func isNil(v reflect.Value) bool {
	return !v.IsValid() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.IsNil()
}

// isLess orders numbers of one kind, and texts.
func isLess(a, b any) (bool, error) {
	switch x := basic(a).(type) {
	case int64:
		if y, is := basic(b).(int64); is {
			return x < y, nil
		}
	case float64:
		if y, is := basic(b).(float64); is {
			return x < y, nil
		}
	case string:
		if y, is := basic(b).(string); is {
			return x < y, nil
		}
	}
	return false, fmt.Errorf("incompatible types for comparison: %T and %T", a, b)
}

func isLessOrEqual(a, b any) (bool, error) {
	if less, err := isLess(a, b); less || err != nil {
		return less, err
	}
	return isEqual(a, b)
}
