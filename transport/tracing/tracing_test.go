package tracing

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/transport/tracing/tracingtest"
)

// refuses is a driver that refuses every create in words that nobody else may read.
type refuses struct {
	driverv1alpha1.UnimplementedMachineServiceServer
}

func (refuses) CreateMachine(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
	return nil, status.Error(codes.Internal, "the password is s3cr3t")
}

// provider returns one whose spans go to endpoint.
func provider(t *testing.T, endpoint, service string) *Provider {
	t.Helper()
	p, err := New(t.Context(), endpoint, service, "v1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func shutDown(t *testing.T, p *Provider) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func TestACallIsOneTraceOnBothSides(t *testing.T) {
	dir := t.TempDir()
	collector, err := tracingtest.Listen(filepath.Join(dir, "otlp.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer collector.Stop()
	endpoint := "unix://" + filepath.Join(dir, "otlp.sock")
	core, driver := provider(t, endpoint, "core"), provider(t, endpoint, "driver")
	listener, err := net.Listen("unix", filepath.Join(dir, "d.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(Server(driver)))
	driverv1alpha1.RegisterMachineServiceServer(server, refuses{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "d.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithChainUnaryInterceptor(Client(core, "sawmill")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, reconcile := core.Tracer("test").Start(t.Context(), "reconcile")
	request := &driverv1alpha1.CreateMachineRequest{
		Machine:  &driverv1alpha1.MachineRef{Namespace: "n", Name: "m", Uid: "u"},
		UserData: []byte("s3cr3t"), Provider: &driverv1alpha1.ProviderContext{Secrets: map[string][]byte{"password": []byte("s3cr3t")}},
	}
	if _, err := driverv1alpha1.NewMachineServiceClient(conn).CreateMachine(ctx, request); status.Code(err) != codes.Internal {
		t.Fatalf("CreateMachine() = %v", err)
	}
	reconcile.End()
	shutDown(t, core)
	shutDown(t, driver)

	spans := map[string]tracingtest.Span{}
	for _, s := range collector.Spans() {
		spans[s.Service+" "+s.GetName()] = s
		if strings.Contains(s.String(), "s3cr3t") {
			t.Errorf("a span tells the secret: %s", s)
		}
	}
	const create = "millwright.driver.v1alpha1.MachineService/CreateMachine"
	root, asked, served := spans["core reconcile"], spans["core "+create], spans["driver "+create]
	if len(spans) != 3 || root.Span == nil || asked.Span == nil || served.Span == nil {
		t.Fatalf("spans: %v", spans)
	}
	if !bytes.Equal(asked.GetParentSpanId(), root.GetSpanId()) || !bytes.Equal(served.GetParentSpanId(), asked.GetSpanId()) ||
		!bytes.Equal(served.GetTraceId(), root.GetTraceId()) {
		t.Errorf("they are not below one another: %v", spans)
	}
	for _, s := range []tracingtest.Span{asked, served} {
		if s.Attribute("millwright.machine.uid") != "u" || s.Attribute("rpc.method") != "CreateMachine" || s.GetStatus().GetMessage() != "Internal" {
			t.Errorf("span %s", s)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for endpoint, refused := range map[string]string{
		"":                              "",
		"unix:///run/otlp.sock":         "",
		"https://otlp.example:4317":     "",
		"https://[::1]:4317/":           "",
		"http://127.0.0.1:4317":         "plaintext TCP is refused",
		"127.0.0.1:4317":                "https://host:port",
		"https://otlp.example":          "https://host:port",
		"https://otlp.example:4317/v1":  "https://host:port",
		"unix://run/otlp.sock":          "unix:///absolute/path",
		"https://otlp.example:4317\x00": "https://host:port",
	} {
		p, err := New(t.Context(), endpoint, "s", "v", slog.New(slog.DiscardHandler))
		switch {
		case refused == "" && err != nil:
			t.Errorf("%q: %v", endpoint, err)
		case refused == "":
			shutDown(t, p)
		case err == nil || !strings.Contains(err.Error(), refused):
			t.Errorf("%q: %v, want an error that says %q", endpoint, err, refused)
		}
	}
}

func TestACollectorThatIsAwayIsWaitedForInVain(t *testing.T) {
	var told bytes.Buffer
	p, err := New(t.Context(), "unix://"+filepath.Join(t.TempDir(), "nobody.sock"), "s", "v", slog.New(slog.NewTextHandler(&told, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, span := p.Tracer("test").Start(t.Context(), "lost")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Shutdown(ctx); err == nil && told.Len() == 0 {
		t.Error("nobody is told that spans are lost")
	}
}
