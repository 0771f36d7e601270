package conformance

import (
	"context"
	"crypto/tls"
	"maps"
	"os"
	"time"
)

// noticeLimit is how long a driver may take to notice that its files have been replaced.
const noticeLimit = 5 * time.Second

// rotation is what a check replaces on the driver's side while the driver runs.
type rotation struct {
	remote
	t *trial
	// driverFolder is what the driver reads. driver is the certificate in it, core that of the
	// harness.
	driverFolder string
	driver, core tls.Certificate
	// ca is a CA that neither side trusts yet.
	ca authority
}

// newRotation prepares one; the check ends where there can be none.
func newRotation(t *trial) *rotation {
	r := &rotation{remote: t.remote(), t: t, driverFolder: t.config.DriverCertificates}
	if r.driverFolder == "" {
		t.notRun("it replaces the driver's certificates for a while: name the folder with them, which the driver reads, as driverCertificates")
	}
	var err error
	if r.driver, err = load(r.driverFolder); err != nil {
		t.notRun("driverCertificates: " + err.Error())
	}
	if r.core, err = load(r.folder); err != nil {
		t.fatalf("read what stands in tls of the endpoint: %v", err)
	}
	if r.ca, err = newAuthority(); err != nil {
		t.fatalf("make a CA: %v", err)
	}
	return r
}

// issue makes a certificate of the new CA for whom another one is.
func (r *rotation) issue(like tls.Certificate) tls.Certificate {
	issued, err := r.ca.issue(like.Leaf)
	if err != nil {
		r.t.fatalf("issue a certificate: %v", err)
	}
	return issued
}

// replace has other files stand in the driver's folder until restore is called. That waits until
// the driver goes by the old ones again.
func (r *rotation) replace(ctx context.Context, files map[string][]byte) (restore func()) {
	before, err := readFiles(r.driverFolder, files)
	if err == nil {
		err = writeFiles(r.driverFolder, files)
	}
	if err != nil {
		_ = writeFiles(r.driverFolder, before) // if one could be written
		r.t.notRun("driverCertificates: " + err.Error())
	}
	return func() {
		err := writeFiles(r.driverFolder, before)
		if err == nil {
			err = r.serves(ctx, r.remote, r.core)
		}
		if err != nil && ctx.Err() == nil {
			r.t.errorf("the driver's files were put back, and it takes no call: %v", err)
		}
	}
}

// serves waits until the driver takes a call of a client that shows this certificate, up to
// noticeLimit. Each call has a connection of its own. The error is that of the last one.
func (r *rotation) serves(ctx context.Context, at remote, shown tls.Certificate) error {
	for began := time.Now(); ; {
		creds, err := at.showing(shown)
		if err == nil {
			err = at.ask(ctx, creds)
		}
		if err == nil || time.Since(began) > noticeLimit {
			return err
		}
		select {
		case <-time.After(shortestPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// trusting is the driver for clients that trust the new CA alone. Their folder is the one given.
func (r *rotation) trusting(folder string) (remote, error) {
	files, err := asFiles(r.core)
	if err != nil {
		return remote{}, err
	}
	maps.Copy(files, r.ca.asFile())
	at := r.remote
	at.folder = folder
	return at, writeFiles(folder, files)
}

func newCertificate(ctx context.Context, t *trial) {
	r := newRotation(t)
	folder := t.folder()
	defer func() { _ = os.RemoveAll(folder) }()
	// Nothing but the new certificate shows this client that it is the driver.
	at, err := r.trusting(folder)
	if err != nil {
		t.fatalf("write certificates: %v", err)
	}
	files, err := asFiles(r.issue(r.driver))
	if err != nil {
		t.fatalf("write certificates: %v", err)
	}
	defer r.replace(ctx, files)()
	if err := r.serves(ctx, at, r.core); err != nil {
		t.errorf("%s after its certificate was replaced the driver does not show new connections the new one: %v", noticeLimit, err)
	}
}

func replacedCA(ctx context.Context, t *trial) {
	r := newRotation(t)
	ofNewCA := r.issue(r.core)
	defer r.replace(ctx, r.ca.asFile())()
	if err := r.serves(ctx, r.remote, ofNewCA); err != nil {
		t.errorf("%s after its CA was replaced the driver does not take clients of the new one: %v", noticeLimit, err)
		return
	}
	r.mustRefuse(ctx, t, "of the CA that was replaced", r.core)
}
