package vm

import (
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"
)

// read returns a file of the seed.
func read(t *testing.T, f Folder, name string) []byte {
	t.Helper()
	iso, err := os.Open(f.file(seedFile))
	if err != nil {
		t.Fatal(err)
	}
	defer iso.Close()
	info, err := iso.Stat()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the seed has the mode %s (%v)", info.Mode(), err)
	}
	cd, err := iso9660.Read(file.New(iso, true), info.Size(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimRight(cd.Label(), " ") != "cidata" {
		t.Errorf("the seed's label is %q", cd.Label())
	}
	one, err := cd.OpenFile("/"+name, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(one)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// User data reach the VM byte for byte, and nothing of them stays elsewhere.
func TestSeed(t *testing.T) {
	bridge := Bridge{First: netip.MustParsePrefix("10.77.0.10/24"), Gateway: netip.MustParseAddr("10.77.0.1"), Nameservers: []netip.Addr{netip.MustParseAddr("10.77.0.2")}}
	long := make([]byte, 64<<10)
	for i := range long {
		long[i] = byte(i * 7)
	}
	for name, tc := range map[string]struct {
		userData []byte
		address  netip.Addr
	}{
		"none":      {userData: []byte{}},
		"binary":    {userData: []byte("\x1f\x8b\x00\xff\n\r\n")},
		"long":      {userData: long},
		"on bridge": {userData: []byte("#cloud-config\n"), address: netip.MustParseAddr("10.77.0.10")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t, nil)
			if err := f.writeSeed(&Record{UID: "uid", Name: "name", Address: tc.address}, tc.userData, bridge); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.userData, read(t, f, "user-data"), cmp.Transformer("text", func(b []byte) string { return string(b) })); diff != "" {
				t.Error(diff)
			}
			var got map[string]any
			if err := json.Unmarshal(read(t, f, "meta-data"), &got); err != nil || got["instance-id"] != "uid" || got["local-hostname"] != "name" {
				t.Errorf("meta data are %v (%v)", got, err)
			}
			if _, err := os.Stat(f.file(seedFolder)); !os.IsNotExist(err) {
				t.Errorf("what the seed was made from is left (%v)", err)
			}
			if !tc.address.IsValid() {
				return
			}
			var network any
			if err := json.Unmarshal(read(t, f, "network-config"), &network); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"version": 2.0, "ethernets": map[string]any{"id0": map[string]any{
				"match": map[string]any{"macaddress": "52:54:0a:4d:00:0a"}, "addresses": []any{"10.77.0.10/24"}, "accept-ra": false,
				"routes": []any{map[string]any{"to": "0.0.0.0/0", "via": "10.77.0.1"}}, "nameservers": map[string]any{"addresses": []any{"10.77.0.2"}},
			}}}
			if diff := cmp.Diff(want, network); diff != "" {
				t.Error(diff)
			}
		})
	}
}
