package apischema

import (
	"strings"
	"testing"
)

const (
	templateSpec  = "spec.template.spec"
	providerSpec  = templateSpec + ".providerSpec"
	providerValue = providerSpec + ".value"
	network       = providerValue + ".network"
	oneAddress    = "{cidr: 192.168.1.10/24, gateway: 192.168.1.1}"
	rollingUpdate = "spec.strategy.rollingUpdate"
	matchLabels   = "spec.selector.matchLabels"
	expressions   = "spec.selector.matchExpressions"
	labels        = "spec.template.metadata.labels"
)

// mistake is one thing that users get wrong: what they write, the path that the
// error must name, and the words in it that help them.
type mistake struct {
	name  string
	edits []edit
	field string
	hint  string
}

var deploymentMistakes = []mistake{
	{"unknown field in providerSpec.value", []edit{{providerValue + ".cloudProviderspec", "{}"}}, providerValue + ".cloudProviderspec", "unknown field"},
	{"unknown field in spec", []edit{{"spec.replica", "3"}}, "spec.replica", "unknown field"},
	{"configSource", []edit{{templateSpec + ".configSource", "{}"}}, templateSpec + ".configSource", "unknown field"},
	{"replicas -1", []edit{{"spec.replicas", "-1"}}, "spec.replicas", "greater than or equal to 0"},
	{"replicas in words", []edit{{"spec.replicas", "three"}}, "spec.replicas", "must be of type integer"},
	{"replicas a typing error", []edit{{"spec.replicas", "30000000"}}, "spec.replicas", "less than or equal to 100000"},
	{"minReadySeconds -1", []edit{{"spec.minReadySeconds", "-1"}}, "spec.minReadySeconds", "greater than or equal to 0"},
	{"progressDeadlineSeconds 0", []edit{{"spec.progressDeadlineSeconds", "0"}}, "spec.progressDeadlineSeconds", "greater than or equal to 1"},
	{"revisionHistoryLimit -1", []edit{{"spec.revisionHistoryLimit", "-1"}}, "spec.revisionHistoryLimit", "greater than or equal to 0"},
	{"one address for two machines", []edit{{network, oneAddress}, {"spec.replicas", "2"}}, "spec.replicas", "at most 1"},
	{"a name too long for a label", []edit{{"metadata.name", strings.Repeat("n", 64)}}, "metadata.name", "at most 63 characters"},
}

var setMistakes = []mistake{
	{"replicas -1", []edit{{"spec.replicas", "-1"}}, "spec.replicas", "greater than or equal to 0"},
	{"one address for two machines", []edit{{network, oneAddress}, {"spec.replicas", "2"}}, "spec.replicas", "at most 1"},
}

var strategyMistakes = []mistake{
	{"both 0", []edit{{rollingUpdate + ".maxSurge", "0"}, {rollingUpdate + ".maxUnavailable", "0"}}, rollingUpdate + ".maxUnavailable", "set one of them to at least 1"},
	{"both 0%", []edit{{rollingUpdate + ".maxSurge", "0%"}, {rollingUpdate + ".maxUnavailable", "0%"}}, rollingUpdate + ".maxUnavailable", "set one of them to at least 1"},
	{"0 and 0%", []edit{{rollingUpdate + ".maxSurge", "0%"}, {rollingUpdate + ".maxUnavailable", "0"}}, rollingUpdate + ".maxUnavailable", "set one of them to at least 1"},
	{"maxSurge 0, maxUnavailable left out", []edit{{rollingUpdate + ".maxSurge", "0"}}, rollingUpdate + ".maxUnavailable", "set one of them to at least 1"},
	{"maxSurge negative", []edit{{rollingUpdate + ".maxSurge", "-1"}}, rollingUpdate + ".maxSurge", "a percentage such as '25%'"},
	{"maxSurge negative percentage", []edit{{rollingUpdate + ".maxSurge", "-10%"}}, rollingUpdate + ".maxSurge", "a percentage such as '25%'"},
	{"maxSurge a number as a string", []edit{{rollingUpdate + ".maxSurge", `"10"`}}, rollingUpdate + ".maxSurge", "a percentage such as '25%'"},
	{"maxSurge that no int32 holds", []edit{{rollingUpdate + ".maxSurge", "4294967297"}}, rollingUpdate + ".maxSurge", "from 0 to 100000"},
	{"maxUnavailable beyond all", []edit{{rollingUpdate + ".maxUnavailable", "101%"}}, rollingUpdate + ".maxUnavailable", "from '0%' to '100%'"},
	{"unknown strategy", []edit{{"spec.strategy.type", "Replace"}}, "spec.strategy.type", `supported values: "RollingUpdate"`},
	{"one address and a surge", []edit{{network, oneAddress}, {"spec.replicas", "1"}}, rollingUpdate + ".maxSurge", "the strategy Recreate"},
	{"no replacement at a time", []edit{{"spec.strategy.remediation", "{maxInFlight: 0}"}}, "spec.strategy.remediation.maxInFlight", "from 1 to 100000"},
	{"unknown delete policy", []edit{{rollingUpdate + ".deletePolicy", "Youngest"}}, rollingUpdate + ".deletePolicy", `supported values: "Random", "Newest", "Oldest"`},
}

var selectorMistakes = []mistake{
	{"no selector", []edit{{"spec.selector", ""}}, "spec.selector", "Required value"},
	{"empty selector", []edit{{"spec.selector", "{}"}}, "spec.selector", "set matchLabels to labels that the Machines which are meant carry"},
	{"empty matchLabels", []edit{{"spec.selector", "{matchLabels: {}}"}}, "spec.selector", "must not be empty"},
	{"other value", []edit{{matchLabels, "{group: others}"}}, labels, "must carry every label of spec.selector.matchLabels"},
	{"one label of two", []edit{{matchLabels, "{group: nodes, tier: gpu}"}}, labels, "must carry every label of spec.selector.matchLabels"},
	{"template without labels", []edit{{labels, ""}}, labels, "must carry every label of spec.selector.matchLabels"},
	{"template without metadata", []edit{{"spec.template.metadata", ""}}, labels, "must carry every label of spec.selector.matchLabels"},
	{"In without the value", []edit{{expressions, "[{key: group, operator: In, values: [a, b]}]"}}, labels, "spec.selector.matchExpressions"},
	{"In without the label", []edit{{expressions, "[{key: tier, operator: In, values: [a, b]}]"}}, labels, "spec.selector.matchExpressions"},
	{"NotIn with the value", []edit{{expressions, "[{key: group, operator: NotIn, values: [nodes]}]"}}, labels, "spec.selector.matchExpressions"},
	{"Exists without the label", []edit{{expressions, "[{key: tier, operator: Exists}]"}}, labels, "spec.selector.matchExpressions"},
	{"DoesNotExist with the label", []edit{{expressions, "[{key: group, operator: DoesNotExist}]"}}, labels, "spec.selector.matchExpressions"},
	{"In without values", []edit{{expressions, "[{key: group, operator: In}]"}}, expressions + "[0].values", "need at least one value"},
	{"Exists with values", []edit{{expressions, "[{key: group, operator: Exists, values: [nodes]}]"}}, expressions + "[0].values", "take none"},
	{"unknown operator", []edit{{expressions, "[{key: group, operator: Is, values: [nodes]}]"}}, expressions + "[0].operator", `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
}

var templateMistakes = []mistake{
	{"kubelet banana", []edit{{templateSpec + ".versions.kubelet", "banana"}}, templateSpec + ".versions.kubelet", "such as '1.30.3'"},
	{"kubelet without patch", []edit{{templateSpec + ".versions.kubelet", `"1.30"`}}, templateSpec + ".versions.kubelet", "such as '1.30.3'"},
	{"kubelet a number", []edit{{templateSpec + ".versions.kubelet", "1.30"}}, templateSpec + ".versions.kubelet", "must be of type string"},
	{"kubelet with leading zero", []edit{{templateSpec + ".versions.kubelet", "1.030.3"}}, templateSpec + ".versions.kubelet", "such as '1.30.3'"},
	{"no kubelet", []edit{{templateSpec + ".versions", "{}"}}, templateSpec + ".versions.kubelet", "Required value"},
	{"empty cloudProvider", []edit{{providerValue + ".cloudProvider", `""`}}, providerValue + ".cloudProvider", "must name a driver"},
	{"cloudProvider in capitals", []edit{{providerValue + ".cloudProvider", "OpenStack"}}, providerValue + ".cloudProvider", "must name a driver"},
	{"no cloudProvider", []edit{{providerValue + ".cloudProvider", ""}}, providerValue + ".cloudProvider", "Required value"},
	{"no cloudProviderSpec", []edit{{providerValue + ".cloudProviderSpec", ""}}, providerValue + ".cloudProviderSpec", "Required value"},
	{"cloudProviderSpec null", []edit{{providerValue + ".cloudProviderSpec", "null"}}, providerValue + ".cloudProviderSpec", "Required value"},
	{"cloudProviderSpec a string", []edit{{providerValue + ".cloudProviderSpec", "small"}}, providerValue + ".cloudProviderSpec", "must be of type object"},
	{"valueFrom without a class", []edit{{providerSpec + ".valueFrom", "{}"}}, providerSpec + ".valueFrom.machineClass", "Required value"},
	{"valueFrom without a name", []edit{{providerSpec + ".valueFrom", "{machineClass: {name: ''}}"}}, providerSpec + ".valueFrom.machineClass.name", "at least 1 chars"},
	{"valueFrom without value", []edit{{providerSpec, "{valueFrom: {machineClass: {name: a}}}"}}, providerValue, "Required value"},
	{"clusterRef without a name", []edit{{templateSpec + ".clusterRef", "{}"}}, templateSpec + ".clusterRef.name", "Required value"},
	{"unknown operating system", []edit{{providerValue + ".operatingSystem", "windows"}}, providerValue + ".operatingSystem", `supported values: "ubuntu", "flatcar"`},
	{"unknown setting of the operating system", []edit{{providerValue + ".operatingSystemSpec", "{upgrade: true}"}}, providerValue + ".operatingSystemSpec.upgrade", "unknown field"},
	{"address without a prefix", []edit{{network, "{cidr: 192.168.1.10, gateway: 192.168.1.1}"}}, network + ".cidr", "such as 192.168.1.10/24"},
	{"address without a gateway", []edit{{network, "{cidr: 192.168.1.10/24}"}}, network + ".gateway", "is needed beside cidr"},
	{"gateway without an address", []edit{{network, "{gateway: 192.168.1.1}"}}, network + ".cidr", "is needed beside gateway"},
	{"gateway of another family", []edit{{network, "{cidr: 192.168.1.10/24, gateway: 'fd00::1'}"}}, network + ".gateway", "same IP family"},
	{"DNS server by name", []edit{{network, "{dns: {servers: [dns.example.com]}}"}}, network + ".dns.servers[0]", "must be an IP address"},
	{"unknown IP family", []edit{{network, "{ipFamily: IPv5}"}}, network + ".ipFamily", `"IPv4+IPv6"`},
	{"empty ssh key", []edit{{providerValue + ".sshPublicKeys", `[""]`}}, providerValue + ".sshPublicKeys[0]", "at least 1 chars"},
	{"taint with unknown effect", []edit{{templateSpec + ".taints", "[{key: a, effect: Never}]"}}, templateSpec + ".taints[0].effect", `supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`},
	{"taint without effect", []edit{{templateSpec + ".taints", "[{key: a}]"}}, templateSpec + ".taints[0].effect", "Required value"},
	{"taint with a key no kubelet takes", []edit{{templateSpec + ".taints", "[{key: 'a b', effect: NoSchedule}]"}}, templateSpec + ".taints[0].key", "such as 'example.com/dedicated'"},
	{"taint twice", []edit{{templateSpec + ".taints", "[{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]"}}, templateSpec + ".taints[1]", "Duplicate value"},
	{"label value with a blank", []edit{{labels, "{group: nodes, team: 'a b'}"}}, labels + "[team]", "a label's value must"},
	{"label of the Node too long", []edit{{templateSpec + ".metadata", "{labels: {team: " + strings.Repeat("a", 64) + "}}"}}, templateSpec + ".metadata.labels.team", "may not be more than 63"},
	{"startup timeout in words", []edit{{templateSpec + ".nodeStartupTimeout", "soon"}}, templateSpec + ".nodeStartupTimeout", "or '0s' for no limit"},
	{"startup timeout negative", []edit{{templateSpec + ".nodeStartupTimeout", "-5m"}}, templateSpec + ".nodeStartupTimeout", "or '0s' for no limit"},
	{"volume detach timeout in words", []edit{{templateSpec + ".nodeVolumeDetachTimeout", "soon"}}, templateSpec + ".nodeVolumeDetachTimeout", "or '0s' for no limit"},
	{"volume detach timeout negative", []edit{{templateSpec + ".nodeVolumeDetachTimeout", "-5m"}}, templateSpec + ".nodeVolumeDetachTimeout", "or '0s' for no limit"},
	{"drain timeout in words", []edit{{templateSpec + ".nodeDrainTimeout", "soon"}}, templateSpec + ".nodeDrainTimeout", "such as '30m' or '1h30m'"},
	{"drain timeout in days", []edit{{templateSpec + ".nodeDrainTimeout", "1d"}}, templateSpec + ".nodeDrainTimeout", "such as '30m' or '1h30m'"},
	{"drain timeout negative", []edit{{templateSpec + ".nodeDrainTimeout", "-5m"}}, templateSpec + ".nodeDrainTimeout", "such as '30m' or '1h30m'"},
	{"drain timeout 0", []edit{{templateSpec + ".nodeDrainTimeout", "0s"}}, templateSpec + ".nodeDrainTimeout", "such as '30m' or '1h30m'"},
	{"drain timeout that overflows", []edit{{templateSpec + ".nodeDrainTimeout", "9999999999h"}}, templateSpec + ".nodeDrainTimeout", "such as '30m' or '1h30m'"},
	{"drain timeout empty", []edit{{templateSpec + ".nodeDrainTimeout", `""`}}, templateSpec + ".nodeDrainTimeout", "such as '30m' or '1h30m'"},
	{"machineUID in a template", []edit{{templateSpec + ".machineUID", "a"}}, templateSpec + ".machineUID", "remove it from the template"},
	{"providerID in a template", []edit{{templateSpec + ".providerID", "fake:///a"}}, templateSpec + ".providerID", "remove it from the template"},
}

var machineMistakes = []mistake{
	{"machineUID with a slash", []edit{{"spec.machineUID", "a/b"}}, "spec.machineUID", "such as a UUID"},
	{"providerID empty", []edit{{"spec.providerID", `""`}}, "spec.providerID", "at least 1 chars"},
	{"no providerSpec", []edit{{"spec.providerSpec", ""}}, "spec.providerSpec", "Required value"},
	{"unknown field", []edit{{"spec.nodename", "a"}}, "spec.nodename", "unknown field"},
	{"a name too long for a host", []edit{{"metadata.name", strings.Repeat("n", 64)}}, "metadata.name", "at most 63 characters"},
}

var classMistakes = []mistake{
	{"no provider", []edit{{"provider", ""}}, "provider", "Required value"},
	{"provider in capitals", []edit{{"provider", "OpenStack"}}, "provider", "must name a driver"},
	{"no providerSpec", []edit{{"providerSpec", ""}}, "providerSpec", "Required value"},
	{"secret without a name", []edit{{"secretRef", "{namespace: a}"}}, "secretRef.name", "Required value"},
	{"capacity in words", []edit{{"nodeTemplate.capacity", "{cpu: four}"}}, "nodeTemplate.capacity.cpu", "should match"},
	{"unknown field", []edit{{"instanceType", "large"}}, "instanceType", "unknown field"},
}

var clusterMistakes = []mistake{
	{"no cloud for a spec", []edit{{"spec.providerSpec.value.cloudProvider", ""}}, "spec.providerSpec.value.cloudProvider", "Required value"},
	{"pods without a mask", []edit{{"spec.clusterNetwork.pods.cidrBlocks", "[10.0.0.0]"}}, "spec.clusterNetwork.pods.cidrBlocks[0]", "such as 10.0.0.0/16"},
	{"endpoint without a port", []edit{{"spec.apiEndpoints", "[{host: a}]"}}, "spec.apiEndpoints[0].port", "Required value"},
}

var checkMistakes = []mistake{
	{"all machines", []edit{{"spec.selector", "{}"}}, "spec.selector", "must not be empty"},
	{"nothing to check", []edit{{"spec.unhealthyNodeConditions", ""}, {"spec.unhealthyMachineConditions", ""}, {"spec.nodeStartupTimeout", ""}}, "spec.unhealthyNodeConditions", "nothing would ever be unhealthy"},
	{"a condition without a timeout", []edit{{"spec.unhealthyNodeConditions", "[{type: Ready, status: Unknown}]"}}, "spec.unhealthyNodeConditions[0].timeout", "Required value"},
	{"a timeout of nothing", []edit{{"spec.unhealthyNodeConditions", "[{type: Ready, status: Unknown, timeout: 0s}]"}}, "spec.unhealthyNodeConditions[0].timeout", "such as '5m'"},
	{"a timeout in words", []edit{{"spec.nodeStartupTimeout", "soon"}}, "spec.nodeStartupTimeout", "such as '10m'"},
	{"an unknown status", []edit{{"spec.unhealthyNodeConditions", "[{type: Ready, status: Bad, timeout: 5m}]"}}, "spec.unhealthyNodeConditions[0].status", "supported values"},
	{"a condition of its own", []edit{{"spec.unhealthyMachineConditions", "[{type: OwnerRemediated, status: \"False\", timeout: 5m}]"}}, "spec.unhealthyMachineConditions", "that health checks themselves set"},
	{"more than all", []edit{{"spec.maxUnhealthy", "101%"}}, "spec.maxUnhealthy", "a percentage from '0%' to '100%'"},
	{"two limits", []edit{{"spec.unhealthyRange", `"[1-3]"`}}, "spec.unhealthyRange", "set one of them"},
	{"a range without an end", []edit{{"spec.maxUnhealthy", ""}, {"spec.unhealthyRange", `"[1-]"`}}, "spec.unhealthyRange", "such as '[1-3]'"},
	{"a range that is backwards", []edit{{"spec.maxUnhealthy", ""}, {"spec.unhealthyRange", `"[3-1]"`}}, "spec.unhealthyRange", "such as '[1-3]'"},
}

// TestMistakesAreRefused applies each mistake, and wants the error to name the
// field and to help.
func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	for _, group := range []struct {
		name     string
		manifest string
		mistakes []mistake
	}{
		{"deployment", deploymentManifest, deploymentMistakes},
		{"deployment strategy", deploymentManifest, strategyMistakes},
		{"deployment selector", deploymentManifest, selectorMistakes},
		{"deployment template", deploymentManifest, templateMistakes},
		{"set selector", setManifest, selectorMistakes},
		{"set template", setManifest, templateMistakes},
		{"set", setManifest, setMistakes},
		{"machine", machineManifest, machineMistakes},
		{"class", classManifest, classMistakes},
		{"cluster", clusterManifest, clusterMistakes},
		{"health check", checkManifest, checkMistakes},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			for _, m := range group.mistakes {
				t.Run(m.name, func(t *testing.T) { u.in(t).isRefused(edited(t, group.manifest, m.edits...), m) })
			}
		})
	}
}

func (u *user) isRefused(manifest string, m mistake) {
	u.t.Helper()
	stdout, stderr, err := u.try(manifest, "apply", "-f", "-")
	if err == nil {
		u.t.Fatalf("accepted: %s", stdout)
	}
	for what, want := range map[string]string{"field": m.field, "hint": m.hint} {
		if !strings.Contains(stderr, want) {
			u.t.Errorf("the error does not give the %s %q:\n%s", what, want, stderr)
		}
	}
	if strings.Contains(stderr, "evaluating rule") {
		u.t.Errorf("a rule broke down instead of saying what is wrong:\n%s", stderr)
	}
}
