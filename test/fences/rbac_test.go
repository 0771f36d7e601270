package fences

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What the manager may do is spelled out: a wildcard would also grant what does not exist yet.
func TestNoWildcardInRBAC(t *testing.T) {
	manifests, err := filepath.Glob("../../deploy/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	roles := 0
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "kind: ClusterRole\n") {
			roles++
		}
		for i, line := range strings.Split(string(text), "\n") {
			if entry := strings.Trim(line, ` -"'`); entry == "*" {
				t.Errorf("%s:%d grants a wildcard: name what is needed", path, i+1)
			}
		}
	}
	if roles == 0 {
		t.Error("there is no ClusterRole in deploy: this test looks in the wrong place")
	}
}

// most is the most that the manager may do, by namespace ("" for all), API group and resource. What
// is not in it leads further: to Secrets, to pods of one's own, to other identities, to the
// policies that hold the manager itself.
var most = map[right]string{
	{"", "", "nodes"}:                      "get list watch patch delete",
	{"", "", "pods"}:                       "list",
	{"", "", "pods/eviction"}:              "create",
	{"", "policy", "poddisruptionbudgets"}: "list",
	{"", "", "namespaces"}:                 "get",
	// Names of volumes and of what they are attached to: no data of theirs.
	{"", "", "persistentvolumeclaims"}:          "get",
	{"", "storage.k8s.io", "volumeattachments"}: "get list watch",

	{"", "authentication.k8s.io", "tokenreviews"}:        "create",
	{"", "authorization.k8s.io", "subjectaccessreviews"}: "create",
	{"", "events.k8s.io", "events"}:                      "create patch",

	{"", "certificates.k8s.io", "certificatesigningrequests"}:          "get list watch",
	{"", "certificates.k8s.io", "certificatesigningrequests/approval"}: "update",
	{"", "certificates.k8s.io", "signers"}:                             "approve",

	{"", "cluster.k8s.io", "machines"}:                      "get list watch create patch delete",
	{"", "cluster.k8s.io", "machinesets"}:                   "get list watch create patch delete",
	{"", "cluster.k8s.io", "machinedeployments"}:            "get list watch patch",
	{"", "cluster.k8s.io", "machineclasses"}:                "get list watch patch",
	{"", "cluster.k8s.io", "clusters"}:                      "get list watch patch",
	{"", "cluster.k8s.io", "machinehealthchecks"}:           "get list watch",
	{"", "cluster.k8s.io", "machinehealthchecks/status"}:    "patch",
	{"", "cluster.k8s.io", "machines/status"}:               "patch update",
	{"", "cluster.k8s.io", "machinesets/status"}:            "patch",
	{"", "cluster.k8s.io", "machinedeployments/status"}:     "patch",
	{"", "cluster.k8s.io", "machineclasses/status"}:         "patch",
	{"", "cluster.k8s.io", "clusters/status"}:               "patch",
	{"", "cluster.k8s.io", "machinesets/finalizers"}:        "update",
	{"", "cluster.k8s.io", "machinedeployments/finalizers"}: "update",

	{"kube-node-lease", "coordination.k8s.io", "leases"}:   "get",
	{"kube-system", "apps", "daemonsets"}:                  "list",
	{"millwright-system", "coordination.k8s.io", "leases"}: "get create update",
	{"millwright-system", "", "configmaps"}:                "create patch",
	// What Nodes join by, each by its name.
	{"default", "", "services"}:                       "get",
	{"default", "discovery.k8s.io", "endpointslices"}: "get",
	{"kube-public", "", "configmaps"}:                 "get",
	{"kube-system", "", "configmaps"}:                 "get",
	{"kube-system", "", "services"}:                   "get",
	{"millwright-credentials", "", "secrets"}:         "get list create update delete",
	{"kube-system", "", "secrets"}:                    "get create patch delete",
}

type right struct{ namespace, group, resource string }

// rbacObject is a role, or a binding of one.
type rbacObject struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []struct{ APIGroups, Resources, Verbs []string }
	RoleRef  struct{ Kind, Name string }
	Subjects []struct{ Kind, Name, Namespace string }
}

// A thief of the manager's token gets no further than docs/security.md says. Roles that an
// operator is to bind are bound to nobody.
func TestOPS5_TheManagersRightsLeadNoFurther(t *testing.T) {
	roles, bindings := shippedRBAC(t)
	held := 0
	for _, binding := range bindings {
		if binding.RoleRef.Name == "system:node-bootstrapper" {
			continue // of the VMs: see below
		}
		if binding.RoleRef.Name == "millwright-autoscaler" {
			continue // somebody else's: TestOPS3_TheAutoscalersChecklist works under it
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "millwright-manager" {
			t.Errorf("%s %s is for %v, not for the manager alone", binding.Kind, binding.Metadata.Name, binding.Subjects)
		}
		namespace := ""
		if binding.Kind == "RoleBinding" {
			namespace = binding.Metadata.Namespace
		}
		role, has := roles[roleKey(binding.RoleRef.Kind, namespace, binding.RoleRef.Name)]
		if !has {
			t.Errorf("%s %s binds %v, which is not shipped", binding.Kind, binding.Metadata.Name, binding.RoleRef)
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					held++
					allowed := strings.Fields(most[right{namespace, group, resource}])
					for _, verb := range rule.Verbs {
						if !slices.Contains(allowed, verb) {
							t.Errorf("the manager may %s %s of group %q in namespace %q", verb, resource, group, namespace)
						}
					}
				}
			}
		}
	}
	if held < 20 {
		t.Errorf("the manager has only %d rights: this test looks in the wrong place", held)
	}
}

// TestLIFE3_TokensMayAskForCertificatesOnly: a bootstrap token may ask for a certificate. It is
// never bound to nodeclient, with which kube-controller-manager would sign any Node's name for it.
func TestLIFE3_TokensMayAskForCertificatesOnly(t *testing.T) {
	_, bindings := shippedRBAC(t)
	found := 0
	for _, binding := range bindings {
		for _, subject := range binding.Subjects {
			if !strings.HasPrefix(subject.Name, "system:") {
				continue
			}
			found++
			if binding.RoleRef.Name != "system:node-bootstrapper" || subject.Name != "system:bootstrappers:millwright" {
				t.Errorf("%s binds %s to %s", binding.Metadata.Name, subject.Name, binding.RoleRef.Name)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d bindings of the VMs, want 1", found)
	}
}

// shippedRBAC returns the roles in deploy, by roleKey, and the bindings.
func shippedRBAC(t *testing.T) (roles map[string]rbacObject, bindings []rbacObject) {
	t.Helper()
	manifests, err := filepath.Glob("../../deploy/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	roles = map[string]rbacObject{}
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			if !strings.Contains(document, "kind: Role") && !strings.Contains(document, "kind: ClusterRole") {
				continue
			}
			var object rbacObject
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			switch object.Kind {
			case "Role", "ClusterRole":
				roles[roleKey(object.Kind, object.Metadata.Namespace, object.Metadata.Name)] = object
			case "RoleBinding", "ClusterRoleBinding":
				bindings = append(bindings, object)
			}
		}
	}
	return roles, bindings
}

func roleKey(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		namespace = ""
	}
	return kind + " " + namespace + "/" + name
}
