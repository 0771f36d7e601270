package apischema

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	cdpnetwork "github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driverstatus"
	"github.com/millwright-dev/millwright/test/tier"
)

// imagesDir has what docs show of the page; -update takes them anew.
const imagesDir = "../../docs/images"

// hostile is what a cloud may say; a page that takes it for HTML runs it.
const hostile = `quota exceeded: <img src=x onerror="window.hacked=true">`

// TestOPS12_ThePageShowsAThousandMachines opens the page in a browser and reports how long it
// takes.
func TestOPS12_ThePageShowsAThousandMachines(t *testing.T) {
	tier.Long(t, "it makes a thousand Machines")
	t.Parallel()
	u := newUser(t)
	u.fleet("nodes", 1000)
	page := u.openPage()
	opened := time.Now()
	page.run(chromedp.Navigate(page.address))
	page.await(`document.querySelectorAll("#fleet tbody tr").length`, "1003")
	t.Logf("1000 Machines stand on the page %s after it was asked for", time.Since(opened).Round(time.Millisecond))

	page.await(`document.querySelector("tr.deployment progress").value`, "500")
	var md clusterv1alpha1.MachineDeployment
	u.get(types.NamespacedName{Namespace: u.namespace, Name: "nodes"}, &md)
	md.Status.UpdatedReplicas, md.Status.AvailableReplicas = 750, 900
	changed := time.Now()
	u.putStatus(&md)
	page.await(`document.querySelector("tr.deployment progress").value`, "750")
	t.Logf("a rollout moves on the page %s after it has", time.Since(changed).Round(time.Millisecond))

	page.run(chromedp.SendKeys(chromedp.CSS("#filter"), "nodes-new-7\n"))
	page.await(`[...document.querySelectorAll("#fleet tbody tr")].filter(tr => !tr.hidden && tr.ariaLevel == "3").length`, "61") // 7, 70 to 79, 700 to 749
	page.isClean()
}

// TestOPS12_ThePageChangesWhatItMay works on the page with the keyboard, as its user.
func TestOPS12_ThePageChangesWhatItMay(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.fleet("nodes", 8)
	u.tellOfDriver()
	reading := u.openPage("--manager-namespace", u.namespace)
	reading.run(chromedp.Navigate(reading.address), chromedp.WaitVisible(chromedp.CSS("tr.deployment")),
		chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent("s"))
	reading.await(`document.getElementById("ask").open`, "false")
	reading.await(`document.getElementById("mode").textContent`, "read-only")
	reading.await(`document.querySelectorAll("#fleet img").length + String(window.hacked)`, "0undefined")
	reading.await(`document.getElementById("fleet").textContent.includes("<img src=x")`, "true")
	reading.await(`document.getElementById("drivers").textContent`, "● openstack v1.4.0")
	reading.await(`document.querySelectorAll("#events li").length`, "2")
	reading.await(`document.querySelectorAll("aside img").length`, "0")
	if *update {
		reading.screenshot("ui-wide.png", 1280, 720)
		reading.screenshot("ui-narrow.png", 600, 900)
	}
	reading.isClean()

	writing := u.openPage("--write")
	writing.run(chromedp.Navigate(writing.address), chromedp.WaitVisible(chromedp.CSS("tr.deployment")),
		chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent("s"), chromedp.WaitVisible(chromedp.CSS("#number")),
		chromedp.SetValue(chromedp.CSS("#number"), "9"), chromedp.Click(chromedp.CSS("#yes")))
	u.awaitDeployment("nodes", "9 replicas", func(md *clusterv1alpha1.MachineDeployment) bool { return *md.Spec.Replicas == 9 })
	writing.run(chromedp.KeyEvent("p"), chromedp.WaitVisible(chromedp.CSS("#yes")), chromedp.Click(chromedp.CSS("#yes")))
	u.awaitDeployment("nodes", "paused", func(md *clusterv1alpha1.MachineDeployment) bool { return md.Spec.Paused })
	writing.await(`document.querySelector("tr.deployment").textContent.includes("paused")`, "true")
	// Whoever says no changes nothing.
	writing.run(chromedp.KeyEvent(kb.Delete), chromedp.WaitVisible(chromedp.CSS("#yes")), chromedp.Click(chromedp.CSS("dialog button[value=no]")))
	writing.run(chromedp.KeyEvent("r"), chromedp.WaitVisible(chromedp.CSS("#yes")), chromedp.Click(chromedp.CSS("#yes")))
	writing.await(`document.getElementById("problem").textContent`, `restart nodes: machinedeployment "nodes" is paused: resume it first`)
	u.awaitDeployment("nodes", "there", func(md *clusterv1alpha1.MachineDeployment) bool {
		return md.DeletionTimestamp.IsZero() && md.Spec.RolloutAfter == nil
	})
	writing.attack()
}

// fleet makes a deployment in the middle of a rollout: three quarters of its Machines have its
// template, two thirds of these are ready, and one was refused by its cloud.
func (u *user) fleet(name string, machines int) {
	u.t.Helper()
	u.do(edited(u.t, deploymentManifest, edit{"metadata.name", name}, edit{"spec.replicas", fmt.Sprint(machines)}), "apply", "-f", "-")
	var md clusterv1alpha1.MachineDeployment
	u.get(types.NamespacedName{Namespace: u.namespace, Name: name}, &md)
	fresh := machines * 3 / 4
	md.Status = clusterv1alpha1.MachineDeploymentStatus{
		Replicas: int32(machines), UpdatedReplicas: int32(fresh), AvailableReplicas: int32(machines / 2), ObservedGeneration: md.Generation,
	}
	u.putStatus(&md)
	owner := metav1.NewControllerRef(&md, clusterv1alpha1.GroupVersion.WithKind("MachineDeployment"))
	template := md.Spec.Template
	var making sync.WaitGroup
	defer making.Wait()
	next := make(chan *clusterv1alpha1.Machine)
	defer close(next)
	for range 16 {
		making.Go(func() {
			for m := range next {
				status := m.Status
				if err := u.server.client.Create(u.t.Context(), m); err != nil {
					u.t.Error(err)
					continue
				}
				m.Status = status
				if err := u.server.client.Status().Update(u.t.Context(), m); err != nil {
					u.t.Error(err)
				}
			}
		})
	}
	for revision, part := range []struct {
		kind  string
		count int
	}{{"old", machines - fresh}, {"new", fresh}} {
		set := &clusterv1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: u.namespace, Name: name + "-" + part.kind, OwnerReferences: []metav1.OwnerReference{*owner},
			Annotations: map[string]string{clusterv1alpha1.RevisionAnnotation: fmt.Sprint(revision + 1)},
		}}
		set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = new(int32(part.count)), md.Spec.Selector, template
		if err := u.server.client.Create(u.t.Context(), set); err != nil {
			u.t.Fatal(err)
		}
		set.Status.Replicas, set.Status.AvailableReplicas = int32(part.count), int32(part.count*2/3)
		u.putStatus(set)
		for i := range part.count {
			m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: u.namespace, Name: fmt.Sprintf("%s-%d", set.Name, i), Labels: template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1alpha1.GroupVersion.WithKind("MachineSet"))},
			}, Spec: template.Spec}
			m.Status.Phase = clusterv1alpha1.MachinePhaseRunning
			m.Status.NodeRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: m.Name}
			m.Status.Conditions = condition(clusterv1alpha1.ConditionReady, metav1.ConditionTrue, clusterv1alpha1.ReasonMachineReady, "the Node is Ready")
			if i*3 >= part.count*2 {
				m.Status.Phase, m.Status.NodeRef = clusterv1alpha1.MachinePhaseProvisioning, nil
				m.Status.Conditions = condition(clusterv1alpha1.ConditionReady, metav1.ConditionFalse, clusterv1alpha1.ReasonQuotaExceeded, hostile)
			}
			next <- m
		}
	}
}

// tellOfDriver publishes a driver, and what became of two Machines.
func (u *user) tellOfDriver() {
	u.t.Helper()
	data, err := driverstatus.Encode([]driverstatus.Driver{{Name: "openstack", Address: "unix:///driver.sock", Ready: true, Version: "v1.4.0"}})
	if err != nil {
		u.t.Fatal(err)
	}
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: driverstatus.ConfigMapName}, Data: data}}
	for machine, event := range map[string]eventsv1.Event{
		"nodes-new-0": {Type: corev1.EventTypeNormal, Action: "CreateInstance", Reason: "InstanceCreated", Note: "The VM was created."},
		"nodes-new-5": {Type: corev1.EventTypeWarning, Action: "CreateInstance", Reason: clusterv1alpha1.ReasonQuotaExceeded, Note: hostile},
	} {
		event.Namespace, event.Name, event.EventTime = u.namespace, machine+".1", metav1.NowMicro()
		event.ReportingController, event.ReportingInstance = "millwright", "millwright-0"
		event.Regarding = corev1.ObjectReference{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: u.namespace, Name: machine}
		objects = append(objects, &event)
	}
	for _, object := range objects {
		if err := u.server.client.Create(u.t.Context(), object); err != nil {
			u.t.Fatal(err)
		}
	}
}

func (u *user) awaitDeployment(name, what string, is func(*clusterv1alpha1.MachineDeployment) bool) {
	u.t.Helper()
	var md clusterv1alpha1.MachineDeployment
	err := wait.PollUntilContextTimeout(u.t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		u.get(types.NamespacedName{Namespace: u.namespace, Name: name}, &md)
		return is(&md), nil
	})
	if err != nil {
		u.t.Fatalf("%s is not %s: %+v", name, what, md.Spec)
	}
}

// page is the page in a browser of its own.
type page struct {
	t       *testing.T
	context context.Context //nolint:containedctx // chromedp keeps its browser in it
	address string

	mu         sync.Mutex
	complaints []string
}

var printed = regexp.MustCompile(`Open (http://\S+)`)

// openPage has the plugin serve the page, and a browser ready for it.
func (u *user) openPage(args ...string) *page {
	u.t.Helper()
	server := u.follow(append([]string{"ui"}, args...)...)
	server.await("Open http://127.0.0.1:")
	u.t.Cleanup(func() {
		if err := server.interrupt(); err != nil {
			u.t.Errorf("the server of the page: %v: %s", err, server.said())
		}
	})
	program, err := exec.LookPath("chromium")
	if err != nil {
		u.t.Fatalf("the page is tried in Chromium: install Debian's package chromium: %v", err)
	}
	// Chromium leaves its socket in there. The folder's path has to be short.
	temp, err := os.MkdirTemp("", "c")
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = os.RemoveAll(temp) })
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1280, 800),
		chromedp.Env("TMPDIR="+temp))
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(u.t.Context()), options...)
	u.t.Cleanup(stop)
	browser, closeIt := chromedp.NewContext(allocator)
	u.t.Cleanup(closeIt)
	p := &page{t: u.t, context: browser, address: printed.FindStringSubmatch(server.said())[1]}
	p.listen(func(event any) {
		switch e := event.(type) {
		case *cdpruntime.EventExceptionThrown:
			p.complaints = append(p.complaints, e.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			p.complaints = append(p.complaints, e.Entry.Text)
		}
	})
	return p
}

// listen has somebody hear of the browser's events, one after the other.
func (p *page) listen(hear func(event any)) {
	p.t.Helper()
	if err := chromedp.Listen(p.context, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		hear(event)
	}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.context, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// evaluate returns the value of an expression as text.
func (p *page) evaluate(expression string, options ...chromedp.EvaluateOption) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.context, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression, options...))
	if err != nil {
		p.t.Fatal(err)
	}
	return value
}

// await waits until an expression has a value, as text.
func (p *page) await(expression, want string) {
	p.t.Helper()
	got := ""
	err := wait.PollUntilContextTimeout(p.t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		got = p.evaluate("String(" + expression + ").trim()")
		return got == want, nil
	})
	if err != nil {
		p.t.Fatalf("%s is %q, want %q", expression, got, want)
	}
}

// isClean wants no error in the browser's console.
func (p *page) isClean() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.complaints) > 0 {
		p.t.Errorf("the browser complains: %s", strings.Join(p.complaints, "\n"))
	}
}

func (p *page) screenshot(file string, width, height int64) {
	p.t.Helper()
	p.run(chromedp.EmulateViewport(width, height))
	picture, err := chromedp.Run(p.context, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.MkdirAll(imagesDir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(imagesDir, file), picture, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// attack has the same browser open a page of another site that wants to read and to change.
func (p *page) attack() {
	p.t.Helper()
	own, _, _ := strings.Cut(p.address, "/?")
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "<!doctype html><title>prize</title>")
	}))
	defer attacker.Close()
	asked, answers := map[cdpnetwork.RequestID]bool{}, map[cdpnetwork.RequestID]int64{}
	p.listen(func(event any) {
		switch e := event.(type) {
		case *cdpnetwork.EventRequestWillBeSent:
			asked[e.RequestID] = strings.HasPrefix(e.Request.URL, own)
		case *cdpnetwork.EventResponseReceivedExtraInfo:
			answers[e.RequestID] = e.StatusCode
		}
	})
	p.run(func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, cdpnetwork.Enable, cdpnetwork.EnableParams{})
		return none, err
	}, chromedp.Navigate(strings.Replace(attacker.URL, "127.0.0.1", "localhost", 1)))
	said := p.evaluate(fmt.Sprintf(`Promise.all([
		fetch(%[1]q + "/", {credentials: "include"}), fetch(%[1]q + "/stream", {credentials: "include", mode: "no-cors"}),
		fetch(%[1]q + "/actions/delete", {method: "POST", credentials: "include", mode: "no-cors", body: "{}"}),
	].map(f => f.then(r => r.text()).catch(e => ""))).then(texts => texts.join(""))`, own), chromedp.EvalAwaitPromise)
	if said != "" {
		p.t.Errorf("another site reads %q", said)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	tried := 0
	for request, status := range answers {
		if !asked[request] {
			continue
		}
		tried++
		if status < http.StatusBadRequest {
			p.t.Errorf("another site is answered %d", status)
		}
	}
	if tried != 3 {
		p.t.Errorf("of the other site's 3 requests %d arrived: %v, %v", tried, asked, answers)
	}
}
