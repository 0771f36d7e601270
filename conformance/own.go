package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// OwnCheck is a check of a driver's author, which is run beside those of the contract: of what the
// driver promises beyond it, or of a bug that it once had.
type OwnCheck struct {
	// ID is "own/name".
	ID string `json:"id"`
	// Level is Must or Should.
	Level Level `json:"level"`
	// Rule is what the driver promises, for people.
	Rule string `json:"rule"`
	// Run tries it. It must not be nil.
	Run func(context.Context, *OwnTrial) `json:"-"`
}

// OwnTrial is what a check of an author's has of the run. Its methods are safe for concurrent use.
type OwnTrial struct {
	// Machines and Specs call the driver; each call is held to the contract.
	Machines driverv1alpha1.MachineServiceClient
	Specs    driverv1alpha1.ProviderSpecServiceClient
	t        *trial
}

// Errorf notes that the promise is broken.
func (o *OwnTrial) Errorf(format string, args ...any) { o.t.errorf(format, args...) }

// NewCreate returns the request for a machine of the config's spec, which nobody has asked for yet.
// What is made of it is deleted when the check has ended.
func (o *OwnTrial) NewCreate() *driverv1alpha1.CreateMachineRequest {
	m := o.t.machine()
	m.intend()
	return m.createRequest()
}

// own turns the config's checks of the author's into checks.
func (c Config) own() []Check {
	var checks []Check
	for _, one := range c.Own {
		checks = append(checks, Check{ID: one.ID, Level: one.Level, Tier: Core, Rule: one.Rule, run: func(ctx context.Context, t *trial) {
			one.Run(ctx, &OwnTrial{Machines: t.machines, Specs: t.specs, t: t})
		}})
	}
	return checks
}

// checkOwn says what is wrong with the author's checks.
func (c Config) checkOwn() []error {
	var errs []error
	seen := map[string]bool{}
	for _, one := range c.Own {
		if name, is := strings.CutPrefix(one.ID, "own/"); !is || name == "" || seen[one.ID] {
			errs = append(errs, fmt.Errorf("own: the id %q is not own/NAME, or is there twice", one.ID))
		}
		if one.Level != Must && one.Level != Should || one.Rule == "" || one.Run == nil {
			errs = append(errs, fmt.Errorf("own: %s: give the level %s or %s, a rule and what tries it", one.ID, Must, Should))
		}
		seen[one.ID] = true
	}
	return errs
}

// ownRequest is what an executable with checks is told on its standard input.
type ownRequest struct {
	// Endpoint is where the driver serves.
	Endpoint string `json:"endpoint"`
	// ClusterUID marks all that is made in the run.
	ClusterUID   string          `json:"clusterUID"`
	ProviderSpec json.RawMessage `json:"providerSpec"`
	// Secrets are the credentials, in base64.
	Secrets map[string][]byte `json:"secrets,omitempty"`
}

// ownAnswer is what it writes to its standard output.
type ownAnswer struct {
	// Breaches say how the promise is broken; none where it is kept.
	Breaches []string `json:"breaches,omitempty"`
	// NotRun is why it could not be tried.
	NotRun string `json:"notRun,omitempty"`
}

// loadOwn asks an executable for its checks: `PATH list` prints them as JSON, a list of objects
// with id, level and rule. `PATH run ID` tries one: it reads an object with endpoint, clusterUID,
// providerSpec and secrets, and prints one with breaches, a list of texts, or notRun. It deletes
// what it makes.
func loadOwn(ctx context.Context, path string) ([]OwnCheck, error) {
	var checks []OwnCheck
	if err := execOwn(ctx, nil, &checks, path, "list"); err != nil {
		return nil, fmt.Errorf("ownChecks: %w", err)
	}
	for i := range checks {
		id := checks[i].ID
		checks[i].Run = func(ctx context.Context, o *OwnTrial) {
			endpoint := o.t.config.Endpoint
			if strings.HasPrefix(endpoint, "exec:") {
				// Nobody else can call a driver that the harness has started: another serves on a
				// socket.
				folder := o.t.folder()
				defer func() { _ = os.RemoveAll(folder) }()
				served := firstSidecar(ctx, o.t, folder)
				defer served.kill()
				endpoint = "unix://" + served.path
			}
			var answer ownAnswer
			request := ownRequest{Endpoint: endpoint, ClusterUID: o.t.clusterUID, ProviderSpec: o.t.config.ProviderSpec, Secrets: o.t.secrets}
			if err := execOwn(ctx, request, &answer, path, "run", id); err != nil {
				o.t.fatalf("%v", err)
			}
			if answer.NotRun != "" {
				o.t.notRun(answer.NotRun)
			}
			for _, breach := range answer.Breaches {
				o.t.errorf("%s", breach)
			}
		}
	}
	return checks, nil
}

// execOwn runs an executable with JSON on its input and output.
func execOwn(ctx context.Context, in, out any, path string, args ...string) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, path, args...)
	var wrote bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(raw), &wrote
	answer, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", path, strings.Join(args, " "), err, bytes.TrimSpace(wrote.Bytes()))
	}
	decoder := json.NewDecoder(bytes.NewReader(answer))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return errors.Join(fmt.Errorf("%s %s: its answer is not as it has to be", path, strings.Join(args, " ")), err)
	}
	return nil
}
