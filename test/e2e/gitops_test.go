package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/gitops"
	"github.com/millwright-dev/millwright/test/tier"
)

// Through the phases of a rollout, a failure, a pause and a deletion, Argo CD, Flux, which goes by
// kstatus, and `kubectl wait` say what users should do: wait, mend something, or nothing.
func TestOPS6_GitOpsToolsFollowARollout(t *testing.T) {
	tier.Long(t, "it goes through six rollouts")
	t.Parallel()
	u := newUser(t)
	const web = "machinedeployment/web"
	patch := func(spec string) {
		t.Helper()
		u.kubectl("patch", web, "--type=merge", "-p", `{"spec":`+spec+`}`)
	}
	awaitReady := func() {
		t.Helper()
		u.kubectl("wait", web, "--for=condition=Ready", "--timeout="+waitLimit.String())
		u.checkVerdicts(web, status.CurrentStatus, "Healthy")
	}
	u.apply(deployment("web", 2, nil))
	awaitReady()

	patch(`{"template":{"spec":{"versions":{"kubelet":"1.34.2"}}}}`)
	u.awaitVerdicts(web, status.InProgressStatus, "Progressing")
	awaitReady()
	if got := u.kubelets(); got != "1.34.2 1.34.2" {
		t.Errorf("Ready with the kubelets %s", got)
	}

	patch(`{"paused":true,"template":{"spec":{"versions":{"kubelet":"1.34.3"}}}}`)
	u.awaitVerdicts(web, status.InProgressStatus, "Suspended")
	patch(`{"paused":false}`)
	awaitReady()

	flavor := func(name string) string {
		return `{"progressDeadlineSeconds":2,"template":{"spec":{"providerSpec":{"value":{"cloudProviderSpec":{"flavor":"` + name + `"}}}}}}`
	}
	patch(flavor("no-such-flavor"))
	u.awaitVerdicts(web, status.FailedStatus, "Degraded")
	patch(flavor("small"))
	awaitReady()

	u.kubectl("scale", web, "--replicas=3")
	awaitReady()
	u.awaitRunning(3)
	u.checkVerdicts("machine/"+u.names()[0], status.CurrentStatus, "Healthy")

	u.inject(&backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: u.createVM()},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS,
		Error:  &backendv1alpha1.FaultError{Message: "No valid host was found"},
		Times:  1,
	})
	u.apply(standalone("single", ""))
	u.awaitVerdicts("machine/single", status.FailedStatus, "Degraded")
	u.kubectl("delete", "machine", "single")

	u.kubectl("annotate", "machines", "--all", "pre-terminate.delete.hook.machine.cluster.x-k8s.io/hold=test")
	u.kubectl("delete", web, "--wait=false", "--cascade=foreground")
	u.awaitVerdicts(web, status.TerminatingStatus, "Progressing")
	u.kubectl("annotate", "machines", "--all", "pre-terminate.delete.hook.machine.cluster.x-k8s.io/hold-")
	u.awaitGone()
}

// verdicts returns what kstatus and Argo CD say of an object now, and their words.
func (u *user) verdicts(object string) (kstatus status.Status, argo, words string) {
	u.t.Helper()
	of := &unstructured.Unstructured{}
	if err := of.UnmarshalJSON([]byte(u.kubectl("get", object, "-o", "json"))); err != nil {
		u.t.Fatal(err)
	}
	result, err := status.Compute(of)
	if err != nil {
		u.t.Fatal(err)
	}
	script, err := gitops.Script("../../deploy/argocd/argocd-cm.yaml", of.GetKind())
	if err != nil {
		u.t.Fatal(err)
	}
	argo, message, err := gitops.Judge(script, of.Object)
	if err != nil {
		u.t.Fatal(err)
	}
	return result.Status, argo, strings.Join([]string{result.Message, message}, "; ")
}

func (u *user) checkVerdicts(object string, kstatus status.Status, argo string) {
	u.t.Helper()
	if gotStatus, gotArgo, words := u.verdicts(object); gotStatus != kstatus || gotArgo != argo {
		u.t.Errorf("%s: kstatus says %s, Argo CD %s, want %s and %s: %s", object, gotStatus, gotArgo, kstatus, argo, words)
	}
}

func (u *user) awaitVerdicts(object string, kstatus status.Status, argo string) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("kstatus to say %s of %s, and Argo CD %s", kstatus, object, argo), func(context.Context) error {
		if gotStatus, gotArgo, words := u.verdicts(object); gotStatus != kstatus || gotArgo != argo {
			return fmt.Errorf("they say %s and %s: %s", gotStatus, gotArgo, words)
		}
		return nil
	})
}
