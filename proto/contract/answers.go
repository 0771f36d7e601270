package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

var driverName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidDriverName says whether name may name a driver; the rule stands on
// GetPluginInfoResponse.name.
func ValidDriverName(name string) bool {
	return driverName.MatchString(name)
}

// CheckAnswer checks any answer of a driver; messages without rules pass. A nil message breaks
// every rule of its type.
func CheckAnswer(answer any) Violations {
	var c checker
	switch a := answer.(type) {
	case *handshakev1.GetPluginInfoResponse:
		c.pluginInfo(a)
	case *driverv1alpha1.GetCapabilitiesResponse:
		c.capabilities(a)
	case *driverv1alpha1.ProbeResponse:
		if a.GetReady() != (a.GetReason() == "") {
			c.add("reason", "must be empty when ready, and say why when not")
		}
	case *driverv1alpha1.CreateMachineResponse:
		c.machine("machine", a.GetMachine())
	case *driverv1alpha1.GetMachineStatusResponse:
		c.machine("machine", a.GetMachine())
	case *driverv1alpha1.DeleteMachineResponse:
		if a.GetMachine() != nil {
			c.machine("machine", a.GetMachine())
		}
	case *driverv1alpha1.ListMachinesResponse:
		for i, m := range a.GetMachines() {
			c.machine(fmt.Sprintf("machines[%d]", i), m)
		}
	case *driverv1alpha1.AdoptMachineResponse:
		c.machine("machine", a.GetMachine())
	case *driverv1alpha1.GetConsoleOutputResponse:
		c.size("output", len(a.GetOutput()), MaxConsoleBytes)
	}
	return c.found
}

func (c *checker) pluginInfo(a *handshakev1.GetPluginInfoResponse) {
	if !ValidDriverName(a.GetName()) {
		c.add("name", "must match "+driverName.String())
	}
	c.required("vendor_version", a.GetVendorVersion())
	if len(a.GetApiPackages()) == 0 {
		c.add("api_packages", "is required")
	}
}

func (c *checker) capabilities(a *driverv1alpha1.GetCapabilitiesResponse) {
	c.required("provider_id_prefix", a.GetProviderIdPrefix())
	c.size("provider_id_prefix", len(a.GetProviderIdPrefix()), MaxProviderIDBytes)
	if strings.ContainsFunc(a.GetProviderIdPrefix(), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		c.add("provider_id_prefix", "holds white space or a control character")
	}
	c.features(a.GetFeatures())
	limits := a.GetLimits()
	if limits.GetMaxConcurrentRequests() < 0 {
		c.add("limits.max_concurrent_requests", "is negative; 0 means core's default")
	}
	c.tagLimits(limits.GetTags())
	if limits.GetMaxUserDataBytes() < 0 {
		c.add("limits.max_user_data_bytes", "is negative; 0 means core's default")
	}
	if settle := limits.GetCreateSettle().AsDuration(); settle < 0 || settle > MaxCreateSettle {
		c.add("limits.create_settle", "is negative or exceeds "+MaxCreateSettle.String())
	}
}

func (c *checker) tagLimits(limits *driverv1alpha1.TagLimits) {
	if _, err := tagCharacters(limits); err != nil {
		c.add("limits.tags.characters", err.Error())
	}
	if limits.GetMaxTags() < -1 || limits.GetMaxKeyLength() < 0 || limits.GetMaxValueLength() < 0 {
		c.add("limits.tags", "holds a negative number; 0 means no limit, and max_tags of -1 no tags")
	}
}

// features tells each breach once: there may be millions of them.
func (c *checker) features(announced []driverv1alpha1.Feature) {
	if slices.Contains(announced, driverv1alpha1.Feature_FEATURE_UNSPECIFIED) {
		c.add("features", "holds FEATURE_UNSPECIFIED")
	}
	seen := map[driverv1alpha1.Feature]struct{}{}
	for _, feature := range announced {
		if _, twice := seen[feature]; twice {
			c.add("features", "repeats "+feature.String())
			return
		}
		seen[feature] = struct{}{}
	}
}

func (c *checker) machine(field string, m *driverv1alpha1.Machine) {
	if m == nil {
		c.add(field, "is required")
		return
	}
	c.ref(field+".ref", m.GetRef())
	c.required(field+".cluster_uid", m.GetClusterUid())
	c.size(field+".last_known_state", len(m.GetLastKnownState()), MaxLastKnownStateBytes)
	switch m.GetState() {
	case driverv1alpha1.MachineState_MACHINE_STATE_UNSPECIFIED:
		c.add(field+".state", "is UNSPECIFIED")
	case driverv1alpha1.MachineState_MACHINE_STATE_FAILED:
		c.required(field+".reason", m.GetReason())
	case driverv1alpha1.MachineState_MACHINE_STATE_RUNNING:
		c.required(field+".provider_id", m.GetProviderId())
	}
	c.providerID(field+".provider_id", m.GetProviderId())
	for _, id := range m.GetDuplicateProviderIds() {
		c.required(field+".duplicate_provider_ids", id)
		c.providerID(field+".duplicate_provider_ids", id)
	}
	c.aliases(field+".provider_id_aliases", m)
}

// aliases tells the first breach only: there may be millions of them.
func (c *checker) aliases(field string, m *driverv1alpha1.Machine) {
	aliases := m.GetProviderIdAliases()
	switch {
	case len(aliases) > 0 && m.GetProviderId() == "":
		c.add(field, "must be empty where provider_id is")
		return
	case len(aliases) > MaxProviderIDAliases:
		c.add(field, fmt.Sprintf("holds %d ids, at most %d are allowed", len(aliases), MaxProviderIDAliases))
		return
	}
	taken := []string{m.GetProviderId()}
	for _, id := range aliases {
		if slices.Contains(taken, id) {
			c.add(field, "holds provider_id itself, or an id twice")
			return
		}
		taken = append(taken, id)
		c.required(field, id)
		c.providerID(field, id)
	}
}

func (c *checker) providerID(field, id string) {
	c.size(field, len(id), MaxProviderIDBytes)
	if strings.TrimSpace(id) != id {
		c.add(field, "begins or ends with white space")
	}
	if strings.ContainsFunc(id, unicode.IsControl) {
		c.add(field, "holds a control character")
	}
}
