package plan

import (
	"fmt"
	"strings"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// String is the plan, a line a step.
func (r Round) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "round %d of seed %d\n", r.Number, r.Seed)
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "  %5dms  %s\n", s.At.Milliseconds(), s)
	}
	return b.String()
}

// String says what the step does.
func (s Step) String() string {
	switch s.Do {
	case Apply:
		return fmt.Sprintf("apply %s: %d replicas, template %d, surge %d, unavailable %d, min ready %ds",
			s.Target, s.Shape.Replicas, s.Shape.Template, s.Shape.Surge, s.Shape.Unavailable, s.Shape.MinReady)
	case Scale:
		return fmt.Sprintf("scale %s to %d", s.Target, s.Number)
	case DeleteMachine, Mark, DeleteNode, Replace:
		return fmt.Sprintf("%s %s, the %d.", s.Do, s.Target, s.Number)
	case Hook, Sicken:
		return fmt.Sprintf("%s %s, the %d., for %dms", s.Do, s.Target, s.Number, s.Lasts.Milliseconds())
	case Pause, Hold, Kill, Stop, Cut, Stall, DeleteSecret, DeleteBinding, Outage:
		return fmt.Sprintf("%s %s for %dms", s.Do, s.Target, s.Lasts.Milliseconds())
	case Break:
		return "break cloud: " + faultText(s.Fault)
	case Limit:
		return fmt.Sprintf("limit cloud to %d VMs more", s.Number)
	case Change:
		return fmt.Sprintf("change VM, the %d.: %s", s.Number, short(s.Change.String(), "VM_CHANGE_"))
	case ApplyTeam:
		return fmt.Sprintf("%s %s: %d replicas", s.Do, s.Target, s.Number)
	case Detach:
		return fmt.Sprintf("%s, the %d., detached after %dms", s.Do, s.Number, s.Lasts.Milliseconds())
	case Claim:
		return fmt.Sprintf("%s, the %d., for %dms", s.Do, s.Number, s.Lasts.Milliseconds())
	case Delete, Stray, DeleteNamespace, DeleteManifest:
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", s.Do, s.Target))
}

func faultText(f *backendv1alpha1.Fault) string {
	var b strings.Builder
	b.WriteString(short(f.GetEffect().String(), "FAULT_EFFECT_"))
	if e := f.GetError(); f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR {
		fmt.Fprintf(&b, " %s", short(e.GetName().String(), "NAMED_ERROR_"))
	}
	if l := f.GetLatency(); l != nil {
		fmt.Fprintf(&b, " %s to %s", l.GetMin().AsDuration(), l.GetMax().AsDuration())
	}
	if operation := f.GetMatch().GetOperation(); operation != "" {
		fmt.Fprintf(&b, " of %s", operation)
	}
	if f.GetPoint() == backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT {
		b.WriteString(" after its effect")
	}
	if f.GetTimes() > 0 {
		fmt.Fprintf(&b, ", %d times", f.GetTimes())
	}
	return b.String()
}

func short(name, prefix string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", " "))
}
