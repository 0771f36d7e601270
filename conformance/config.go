package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/transport"
)

// Config says which driver is tried, and with what. As JSON, or YAML, it has the names in the tags.
type Config struct {
	// Endpoint is where the driver serves, as unix:///path or dns:///host:port?tls=/folder, or how
	// it is started, as exec:///path. Required.
	Endpoint string `json:"endpoint"`
	// Backend is where the test cloud serves its hooks, as unix:///path. Without it checks that
	// look into the cloud are not run.
	Backend string `json:"backend,omitempty"`
	// ProviderSpec is a cloudProviderSpec of which machines can be made. Required. Small ones cost
	// less.
	ProviderSpec json.RawMessage `json:"providerSpec"`
	// ConflictingSpec differs from it in a field that cannot be changed on a VM.
	ConflictingSpec json.RawMessage `json:"conflictingSpec,omitempty"`
	// Secrets are the credentials, by the names that the driver knows.
	Secrets map[string]Secret `json:"secrets,omitempty"`
	// BadSecrets are credentials that the cloud refuses.
	BadSecrets map[string]Secret `json:"badSecrets,omitempty"`
	// OtherSecrets are credentials of another account.
	OtherSecrets map[string]Secret `json:"otherSecrets,omitempty"`
	// Timeouts are how long the cloud may take.
	Timeouts Timeouts `json:"timeouts"`
	// Cycles is how many machines are made and deleted to see whether the driver leaks; 0: none,
	// and that is not tried.
	Cycles int `json:"cycles,omitempty"`
	// Crowd is how many machines are made at once, within the quota of the cloud; 0: 100 with
	// Backend, without it none, and that is not tried.
	Crowd int `json:"crowd,omitempty"`
	// CloudPage is how many VMs the cloud tells of at once, within its quota; 0: that is not tried.
	CloudPage int `json:"cloudPage,omitempty"`
	// FaultProxy is where the fault proxy between the driver and its cloud is controlled, as
	// http://127.0.0.1:15999. Without it checks that have its requests fail are not run.
	FaultProxy string `json:"faultProxy,omitempty"`
	// Profile is what the driver is to conform to; empty for none: then nothing shows that it does.
	Profile Profile `json:"profile,omitempty"`
	// Seed is what random data comes from, so that a run can be repeated; 0: another each time.
	Seed uint64 `json:"seed,omitempty"`
	// Own are checks of the author's own.
	Own []OwnCheck `json:"-"`
	// OwnChecks is an executable with checks of the author's own, in any language.
	OwnChecks string `json:"ownChecks,omitempty"`
	// Tier chooses checks of one tier; empty: both.
	Tier Tier `json:"tier,omitempty"`
	// Focus are checks and groups to be run, such as "create" or "create/again"; empty: all.
	Focus []string `json:"focus,omitempty"`
	// Waive are checks that may fail, or lack what they need, and why.
	Waive map[string]string `json:"waive,omitempty"`
	// State is the folder in which journals of runs are kept. Default: driver-conformance in the
	// user's cache.
	State string `json:"state,omitempty"`
	// DriverLog is the file that the driver writes its log to, where the harness has not started
	// it: it is searched for secrets.
	DriverLog string `json:"driverLog,omitempty"`
	// DriverFiles are the folders that the driver writes to. They are searched for secrets, as is
	// the folder for temporary files of a driver that the harness starts. They stay writable where
	// the rest is not.
	DriverFiles []string `json:"driverFiles,omitempty"`
	// ExpiredCertificate is a folder with tls.crt and tls.key: a certificate of core's, of the CA
	// that a driver on TCP trusts, that has expired.
	ExpiredCertificate string `json:"expiredCertificate,omitempty"`
	// DriverCertificates is the folder with tls.crt, tls.key and ca.crt that a driver on TCP reads.
	// The harness replaces these for a while and puts them back. Without it certificates that are
	// replaced while the driver runs are not tried.
	DriverCertificates string `json:"driverCertificates,omitempty"`
	// Output gets what a driver writes that the harness has started; nil: nobody.
	Output io.Writer `json:"-"`
}

// Secret is where a secret comes from: one of the three.
type Secret struct {
	// Value is the secret itself: for test clouds, whose credentials are no secret.
	Value string `json:"value,omitempty"`
	// Env names the variable that holds it.
	Env string `json:"env,omitempty"`
	// File is the path of the file that holds it, byte for byte.
	File string `json:"file,omitempty"`
}

// Timeouts are how long the cloud may take. The defaults are ten minutes each.
type Timeouts struct {
	// Running is until a VM runs, Gone until one is gone.
	Running Duration `json:"running,omitzero"`
	Gone    Duration `json:"gone,omitzero"`
}

// Duration is a time.Duration that is written like "5m".
type Duration struct{ time.Duration }

// UnmarshalJSON reads a string such as "90s".
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("a duration is a string such as 90s: %w", err)
	}
	var err error
	d.Duration, err = time.ParseDuration(text)
	return err
}

const (
	defaultTimeout = 10 * time.Minute
	// defaultCrowd is for test clouds: they cost nothing.
	defaultCrowd = 100
)

// complete fills in defaults and says all that is wrong.
func (c Config) complete() (Config, error) {
	var errs []error
	if _, err := transport.Parse(c.Endpoint, transport.Options{}); err != nil {
		errs = append(errs, fmt.Errorf("endpoint: %w", err))
	}
	if c.Backend != "" && !strings.HasPrefix(c.Backend, "unix:///") {
		errs = append(errs, fmt.Errorf("backend: is %q; give the socket as unix:///path", c.Backend))
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	errs = append(errs, c.specs()...)
	errs = append(errs, c.numbers()...)
	if c.Crowd == 0 && c.Backend != "" {
		c.Crowd = defaultCrowd
	}
	errs = append(errs, c.folders()...)
	errs = append(errs, c.checkOwn()...)
	errs = append(errs, c.extent()...)
	errs = append(errs, c.selection()...)
	for _, limit := range []*Duration{&c.Timeouts.Running, &c.Timeouts.Gone} {
		if limit.Duration <= 0 {
			limit.Duration = defaultTimeout
		}
	}
	if c.State == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			errs = append(errs, fmt.Errorf("state: name a folder: %w", err))
		}
		c.State = filepath.Join(cache, "driver-conformance")
	}
	return c, errors.Join(errs...)
}

// specs says which of them are none.
func (c Config) specs() []error {
	var errs []error
	if !isObject(c.ProviderSpec) {
		errs = append(errs, errors.New("providerSpec: give a cloudProviderSpec, as an object"))
	}
	if len(c.ConflictingSpec) > 0 && !isObject(c.ConflictingSpec) {
		errs = append(errs, errors.New("conflictingSpec: is not an object"))
	}
	return errs
}

// numbers says which numbers of machines are none.
func (c Config) numbers() []error {
	var errs []error
	if c.Cycles < 0 {
		errs = append(errs, fmt.Errorf("cycles: is %d; say how many machines to make and delete, or leave it out", c.Cycles))
	}
	if c.CloudPage < 0 {
		errs = append(errs, fmt.Errorf("cloudPage: is %d; say how many VMs the cloud tells of at once, or leave it out", c.CloudPage))
	}
	if c.Crowd < 0 || c.Crowd == 1 {
		errs = append(errs, fmt.Errorf("crowd: is %d; say how many machines to make at once, two at least, or leave it out", c.Crowd))
	}
	return errs
}

// folders says which of those that the driver writes to are none.
func (c Config) folders() []error {
	var errs []error
	for _, folder := range c.DriverFiles {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			errs = append(errs, fmt.Errorf("driverFiles: %q is no folder", folder))
		}
	}
	return errs
}

// extent says what is wrong with how much is to be tried.
func (c Config) extent() []error {
	var errs []error
	if !slices.Contains([]Tier{"", Core, Fault}, c.Tier) {
		errs = append(errs, fmt.Errorf("tier: is %q; choose %s or %s", c.Tier, Core, Fault))
	}
	if !slices.Contains([]Profile{"", ProfileBasic, ProfileHooks, ProfileFault, ProfileHTTP}, c.Profile) {
		errs = append(errs, fmt.Errorf("profile: is %q; choose %s, %s, %s or %s", c.Profile, ProfileBasic, ProfileHooks, ProfileFault, ProfileHTTP))
	}
	if c.Profile != "" && (c.Tier != "" || len(c.Focus) > 0) {
		errs = append(errs, errors.New("profile: is tried whole; leave out tier and focus, or the profile"))
	}
	return errs
}

// selection says what is wrong with the choice of checks.
func (c Config) selection() []error {
	known := map[string]bool{}
	for _, check := range append(Checks(), c.own()...) {
		known[check.ID], known[group(check.ID)] = true, true
	}
	var errs []error
	for _, id := range c.Focus {
		if !known[id] {
			errs = append(errs, fmt.Errorf("focus: there is no check %q; list shows all", id))
		}
	}
	for id, reason := range c.Waive {
		if !known[id] {
			errs = append(errs, fmt.Errorf("waive: there is no check %q; list shows all", id))
		}
		if reason == "" {
			errs = append(errs, fmt.Errorf("waive: say why %q may fail", id))
		}
	}
	return errs
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

func group(id string) string {
	name, _, _ := strings.Cut(id, "/")
	return name
}

// resolve reads secrets from where they are.
func resolve(secrets map[string]Secret) (map[string][]byte, error) {
	values := map[string][]byte{}
	var errs []error
	for name, s := range secrets {
		switch {
		case s.Env != "":
			value, set := os.LookupEnv(s.Env)
			if !set {
				errs = append(errs, fmt.Errorf("secret %s: the variable %s is not set", name, s.Env))
			}
			values[name] = []byte(value)
		case s.File != "":
			value, err := os.ReadFile(s.File)
			if err != nil {
				errs = append(errs, fmt.Errorf("secret %s: %w", name, err))
			}
			values[name] = value
		default:
			values[name] = []byte(s.Value)
		}
	}
	return values, errors.Join(errs...)
}
