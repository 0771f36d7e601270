package redact

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// maxMessage bounds how much of a status's message is looked through: many times what the contract
// allows, in bytes.
const maxMessage = 16 * contract.MaxStatusBytes

// Status returns a status without the secrets: its message as by Text, its details as by Detail.
// Details that cannot be read are left out.
func (s *Secrets) Status(of *status.Status) *status.Status {
	if s == nil || len(s.all) == 0 {
		return of
	}
	clean := of.Proto()
	if message := clean.GetMessage(); len(message) > maxMessage {
		clean.Message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	clean.Message = s.Text(clean.GetMessage())
	details := clean.GetDetails()
	clean.Details = nil
	for _, packed := range details {
		detail, err := packed.UnmarshalNew()
		if err != nil || !s.Detail(detail) {
			continue
		}
		if repacked, err := anypb.New(detail); err == nil {
			clean.Details = append(clean.Details, repacked)
		}
	}
	return status.FromProto(clean)
}

// Detail takes the secrets out of the texts of an error detail, in place, and says whether it may
// stay. What core acts on stays: an ErrorInfo's domain and, where it is the contract's, its reason,
// and a PartialState's provider_id. A last_known_state that holds a secret is left out: a driver
// hands over the hash of an account that may come as one.
func (s *Secrets) Detail(detail proto.Message) (stays bool) {
	if s == nil || len(s.all) == 0 {
		return true
	}
	switch d := detail.(type) {
	case *errdetails.ErrorInfo:
		domain, reason := d.GetDomain(), d.GetReason()
		s.texts(d.ProtoReflect())
		d.Domain = domain
		if _, known := contract.Code(contract.ParseReason(reason)); known {
			d.Reason = reason
		}
		return true
	case *driverv1alpha1.PartialState:
		d.ProtoReflect().SetUnknown(nil)
		if s.in(string(d.GetLastKnownState())) {
			d.LastKnownState = nil
		}
		return d.GetProviderId() != "" || len(d.GetLastKnownState()) > 0
	}
	s.texts(detail.ProtoReflect())
	return true
}

// texts cleans all texts of a message, at any depth, and drops fields that this version does not
// know.
func (s *Secrets) texts(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			s.entries(m, field)
		case field.IsList():
			s.items(field, value.List())
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(s.Text(value.String())))
		case field.Kind() == protoreflect.BytesKind && s.in(string(value.Bytes())):
			m.Clear(field)
		case field.Message() != nil:
			s.texts(value.Message())
		}
		return true
	})
}

func (s *Secrets) items(field protoreflect.FieldDescriptor, list protoreflect.List) {
	for i := range list.Len() {
		switch {
		case field.Message() != nil:
			s.texts(list.Get(i).Message())
		case field.Kind() == protoreflect.StringKind:
			list.Set(i, protoreflect.ValueOfString(s.Text(list.Get(i).String())))
		case field.Kind() == protoreflect.BytesKind && s.in(string(list.Get(i).Bytes())):
			list.Set(i, protoreflect.ValueOfBytes(nil))
		}
	}
}

// entries cleans a map by clearing it where a key or value holds a secret: no detail has one whose
// parts matter.
func (s *Secrets) entries(m protoreflect.Message, field protoreflect.FieldDescriptor) {
	dirty := false
	m.Get(field).Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		dirty = dirty || s.in(key.String()) || field.MapValue().Kind() == protoreflect.StringKind && s.in(value.String())
		if field.MapValue().Message() != nil {
			s.texts(value.Message())
		}
		return true
	})
	if dirty {
		m.Clear(field)
	}
}
