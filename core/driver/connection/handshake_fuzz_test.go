package connection

import (
	"net"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/transport"
)

// verbatim is a codec that leaves bytes as they are.
type verbatim struct{}

func (verbatim) Name() string { return "proto" }

func (verbatim) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (verbatim) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

// mumbler is a driver that answers each method with any bytes.
type mumbler struct {
	answers atomic.Pointer[map[string][]byte]
}

func (m *mumbler) answer(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(stream)
	answer, has := (*m.answers.Load())[path.Base(method)]
	if !has {
		return status.Error(codes.Unimplemented, "")
	}
	return stream.SendMsg(&answer)
}

// serve serves m until the test ends and returns a connection to it.
func (m *mumbler) serve(tb testing.TB) *grpc.ClientConn {
	tb.Helper()
	socket := filepath.Join(tb.TempDir(), "d.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		tb.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(verbatim{}), grpc.UnknownServiceHandler(m.answer))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	})
	return conn
}

// FuzzHandshake has a driver say anything about who it is and what it can do.
func FuzzHandshake(f *testing.F) {
	for _, seed := range handshakes() {
		info, err := proto.Marshal(seed.info)
		if err != nil {
			f.Fatal(err)
		}
		caps, err := proto.Marshal(seed.caps)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(info, caps)
	}
	f.Add([]byte("\x0a\x07sawmill\x12\x01\xff"), []byte{0x0a, 0x80})
	m := &mumbler{}
	conn := m.serve(f)
	f.Fuzz(func(t *testing.T, info, caps []byte) {
		m.answers.Store(&map[string][]byte{"GetPluginInfo": info, "GetCapabilities": caps})
		shake := func() (Capabilities, error) {
			s := NewSession(testConfig(), &transport.Conn{ClientConn: conn})
			err := s.shakeHands(t.Context())
			return s.Capabilities, err
		}
		got, err := shake()
		if err == nil {
			checkCapabilities(t, got)
			return
		}
		if !legible(err.Error(), 2*wire.MaxMessage) {
			t.Errorf("refused with %q", err)
		}
		if _, again := shake(); again == nil || again.Error() != err.Error() {
			t.Errorf("refused with %q, and then with %v", err, again)
		}
	})
}

type handshake struct {
	info *handshakev1.GetPluginInfoResponse
	caps *driverv1alpha1.GetCapabilitiesResponse
}

// handshakes are good ones, and some that are not.
func handshakes() []handshake {
	change := func(change func(*handshake)) handshake {
		h := handshake{
			info: &handshakev1.GetPluginInfoResponse{Name: driverName, VendorVersion: "v1", ApiPackages: []string{contract.DriverPackage}},
			caps: &driverv1alpha1.GetCapabilitiesResponse{
				Features: []driverv1alpha1.Feature{driverv1alpha1.Feature_FEATURE_LIST}, Limits: &driverv1alpha1.Limits{}, ProviderIdPrefix: "sawmill:///",
			},
		}
		change(&h)
		return h
	}
	odd := &durationpb.Duration{Seconds: 1, Nanos: -5}
	return []handshake{
		change(func(*handshake) {}),
		change(func(h *handshake) { h.info.Name = "other" }),
		change(func(h *handshake) { h.info.ApiPackages = []string{"millwright.driver.v9", strings.Repeat("\n", 5000)} }),
		change(func(h *handshake) { h.info.VendorVersion = "\u202e" + strings.Repeat("9", 5000) }),
		change(func(h *handshake) { h.caps.ProviderIdPrefix = strings.Repeat("x", 1000) }),
		change(func(h *handshake) { h.caps.Features = append(h.caps.Features, 0, 1, 1, 4711) }),
		change(func(h *handshake) { h.caps.Features = []driverv1alpha1.Feature{5, 6, 7, 8, -1} }),
		change(func(h *handshake) {
			h.caps.Limits = &driverv1alpha1.Limits{
				MaxConcurrentRequests: 1 << 30, MaxUserDataBytes: 1 << 60, CreateSettle: durationpb.New(contract.MaxCreateSettle),
				Deadlines: &driverv1alpha1.Deadlines{
					Identity: odd, Status: &durationpb.Duration{Seconds: 1 << 62}, Mutation: durationpb.New(-1), ListPage: durationpb.New(1),
				},
			}
		}),
		change(func(h *handshake) {
			h.caps.Limits = &driverv1alpha1.Limits{MaxConcurrentRequests: -1, MaxUserDataBytes: -1, CreateSettle: &durationpb.Duration{Seconds: 1 << 62}}
		}),
	}
}

// checkCapabilities holds capabilities that core goes by to what the rest of core relies on.
func checkCapabilities(t *testing.T, c Capabilities) {
	t.Helper()
	if c.MaxConcurrentRequests <= 0 || c.MaxUserDataBytes <= 0 {
		t.Errorf("limits of %d requests and %d bytes", c.MaxConcurrentRequests, c.MaxUserDataBytes)
	}
	if c.CreateSettle < 0 || c.CreateSettle > contract.MaxCreateSettle {
		t.Errorf("creates settle in %v", c.CreateSettle)
	}
	for _, deadline := range []time.Duration{c.Deadlines.Identity, c.Deadlines.Status, c.Deadlines.Mutation, c.Deadlines.ListPage} {
		if deadline <= 0 || deadline > wire.MaxWait {
			t.Errorf("a deadline of %v", deadline)
		}
	}
	for i, feature := range c.Features {
		_, known := driverv1alpha1.Feature_name[int32(feature)]
		if !known || feature == driverv1alpha1.Feature_FEATURE_UNSPECIFIED || slices.Contains(c.Features[:i], feature) {
			t.Errorf("features %v", c.Features)
		}
	}
	if !legible(c.VendorVersion, wire.MaxReason) {
		t.Errorf("version %q", c.VendorVersion)
	}
	if p := c.ProviderIDPrefix; p == "" || len(p) > contract.MaxProviderIDBytes || strings.ContainsFunc(p, unicode.IsSpace) {
		t.Errorf("the prefix %q", p)
	}
}

// legible says whether a text is what people can read on one line, of at most limit bytes.
func legible(text string, limit int) bool {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	return len(text) <= limit && utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) && strings.TrimSpace(text) == text
}
