package redact

import (
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Message returns a message in a form that may be logged: fields marked debug_redact are replaced,
// of any other bytes only their number is told, and the secrets are taken out of all texts. No Go
// printer honours debug_redact. What is not a message is told by its type. The work is done only if
// the value is really logged. nil Secrets are none.
func (s *Secrets) Message(message any) slog.LogValuer { return loggable{message, s} }

type loggable struct {
	message any
	secrets *Secrets
}

// LogValue implements slog.LogValuer.
func (l loggable) LogValue() slog.Value {
	m, ok := l.message.(proto.Message)
	if !ok {
		return slog.StringValue(fmt.Sprintf("%T", l.message))
	}
	return slog.AnyValue(l.secrets.visible(m.ProtoReflect()))
}

// visible returns the fields that are set, by name.
func (s *Secrets) visible(m protoreflect.Message) map[string]any {
	fields := map[string]any{}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		fields[field.TextName()] = s.visibleField(field, value)
		return true
	})
	return fields
}

func (s *Secrets) visibleField(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	if options, ok := field.Options().(*descriptorpb.FieldOptions); ok && options.GetDebugRedact() {
		return Mark
	}
	switch {
	case field.IsMap():
		entries := map[string]any{}
		value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			entries[s.Text(key.String())] = s.visibleValue(field.MapValue(), v)
			return true
		})
		return entries
	case field.IsList():
		items := make([]any, 0, value.List().Len())
		for i := range value.List().Len() {
			items = append(items, s.visibleValue(field, value.List().Get(i)))
		}
		return items
	}
	return s.visibleValue(field, value)
}

func (s *Secrets) visibleValue(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return s.visible(value.Message())
	case protoreflect.BytesKind:
		return fmt.Sprintf("[%d bytes]", len(value.Bytes()))
	case protoreflect.StringKind:
		return s.Text(value.String())
	case protoreflect.EnumKind:
		if v := field.Enum().Values().ByNumber(value.Enum()); v != nil {
			return string(v.Name())
		}
		return int32(value.Enum())
	default:
		return value.Interface()
	}
}
