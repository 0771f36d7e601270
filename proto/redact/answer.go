package redact

import (
	"slices"

	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Answer returns a driver's answer without the secrets in what it says to people: the messages and
// reasons of machines, what is wrong with a spec, why a probe fails. It returns the answer itself
// where there is none, else a copy.
func (s *Secrets) Answer(answer any) any {
	message, ok := answer.(proto.Message)
	if !ok || s == nil || len(s.all) == 0 || !slices.ContainsFunc(spoken(message), func(text *string) bool { return s.in(*text) }) {
		return answer
	}
	message = proto.Clone(message)
	for _, text := range spoken(message) {
		*text = s.Text(*text)
	}
	return message
}

// spoken are the texts of an answer that people read.
func spoken(answer proto.Message) []*string {
	var texts []*string
	switch a := answer.(type) {
	case *driverv1alpha1.ProbeResponse:
		if a != nil {
			texts = append(texts, &a.Reason)
		}
	case *driverv1alpha1.ValidateProviderSpecResponse:
		for _, violation := range a.GetViolations() {
			texts = append(texts, &violation.Field, &violation.Description)
		}
	case *driverv1alpha1.ListMachinesResponse:
		for _, m := range a.GetMachines() {
			texts = append(texts, spokenOf(m)...)
		}
	case interface {
		GetMachine() *driverv1alpha1.Machine
	}:
		texts = spokenOf(a.GetMachine())
	}
	return texts
}

func spokenOf(m *driverv1alpha1.Machine) []*string {
	if m == nil {
		return nil
	}
	return []*string{&m.Reason, &m.Message}
}
