package firstboot

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func pack(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// ignitionOf returns a configuration of version 3.4.0 with further members.
func ignitionOf(members string) string {
	return `{"ignition":{"version":"3.4.0"},` + members + `}`
}

func TestWhatIsLaidOut(t *testing.T) {
	whole := "#cloud-config\nhostname: a\nwrite_files: [{path: /x, content: text}]\n"
	laid := Root{Hostname: "a", Files: map[string]File{"/x": {Content: "text", Mode: 0o644}}}
	inner := ignitionOf(`"storage":{"files":[{"path":"/x","mode":384,"contents":{"source":"data:,y"}}]}`)
	for name, c := range map[string]struct {
		data string
		want Root
	}{
		"cloud-config":               {whole, laid},
		"cloud-config, compressed":   {pack(t, whole), laid},
		"cloud-config without files": {"#cloud-config\n", Root{}},
		"encodings and permissions": {
			"#cloud-config\nwrite_files:\n" +
				"- {path: /b64, encoding: b64, content: " + base64Of("one") + ", permissions: '0600'}\n" +
				"- {path: /gz, encoding: gz+b64, content: " + base64Of(pack(t, "two")) + ", permissions: '755'}\n" +
				"- {path: /a/../plain, encoding: text/plain, content: three}\n",
			Root{Files: map[string]File{
				"/b64": {Content: "one", Mode: 0o600}, "/gz": {Content: "two", Mode: 0o755}, "/plain": {Content: "three", Mode: 0o644},
			}},
		},
		"the last file of a path wins, unless it appends": {
			"#cloud-config\nwrite_files: [{path: /x, content: a}, {path: /x, content: b}, {path: /x, content: c, append: true}]\n",
			Root{Files: map[string]File{"/x": {Content: "bc", Mode: 0o644}}},
		},
		"Ignition": {
			ignitionOf(`"storage":{"files":[{"path":"/etc/hostname","contents":{"source":"data:,b%0A"}},` +
				`{"path":"/b64","mode":384,"contents":{"source":"data:text/plain;charset=utf-8;base64,` + base64Of("one+1") + `"}},` +
				`{"path":"/gz","contents":{"compression":"gzip","source":"data:;base64,` + base64Of(pack(t, "two")) + `"}},` +
				`{"path":"/plain","contents":{"source":"data:,1+1%20%2B"}},{"path":"/empty"}]},` +
				`"systemd":{"units":[{"name":"a.service","enabled":true,"contents":"[Unit]"},{"name":"b.service","dropins":[{"name":"c.conf","contents":"[Service]"}]}]}`),
			Root{Hostname: "b", Files: map[string]File{
				"/etc/hostname": {Content: "b\n", Mode: 0o644}, "/b64": {Content: "one+1", Mode: 0o600}, "/gz": {Content: "two", Mode: 0o644},
				"/plain": {Content: "1+1 +", Mode: 0o644}, "/empty": {Mode: 0o644},
				"/etc/systemd/system/a.service":          {Content: "[Unit]", Mode: 0o644},
				"/etc/systemd/system/b.service.d/c.conf": {Content: "[Service]", Mode: 0o644},
			}},
		},
		"Ignition in Ignition": {
			`{"ignition":{"version":"3.4.0","config":{"replace":{"compression":"gzip","source":"data:;base64,` + base64Of(pack(t, inner)) + `"}}}}`,
			Root{Files: map[string]File{"/x": {Content: "y", Mode: 0o600}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Apply([]byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	file := func(members string) string { return ignitionOf(`"storage":{"files":[{"path":"/x",` + members + `}]}`) }
	for name, c := range map[string]struct{ data, want string }{
		"cloud-config that is not YAML":        {"#cloud-config\n\t", "cloud-config"},
		"an encoding that does not exist":      {"#cloud-config\nwrite_files: [{path: /x, encoding: rot13}]", "rot13"},
		"content that is not base64":           {"#cloud-config\nwrite_files: [{path: /x, encoding: b64, content: '!'}]", "base64"},
		"content that is not gzip":             {"#cloud-config\nwrite_files: [{path: /x, encoding: gz+b64, content: eA==}]", "gzip"},
		"permissions that are a number":        {"#cloud-config\nwrite_files: [{path: /x, permissions: 0644}]", "string"},
		"permissions that are not octal":       {"#cloud-config\nwrite_files: [{path: /x, permissions: '0888'}]", "octal"},
		"permissions beyond the bits":          {"#cloud-config\nwrite_files: [{path: /x, permissions: '10000'}]", "octal"},
		"a relative path":                      {"#cloud-config\nwrite_files: [{path: x}]", "absolute"},
		"a compressed cloud-config, cut off":   {pack(t, "#cloud-config\n")[:15], "gzip"},
		"Ignition that is not JSON":            {"{", "Ignition"},
		"no version":                           {"{}", "version"},
		"a version that is not known":          {`{"ignition":{"version":"3.9.0"}}`, "3.9.0"},
		"a version of another format":          {`{"ignition":{"version":"2.3.0"}}`, "2.3.0"},
		"a mode beyond the bits":               {file(`"mode":4096`), "mode 4096"},
		"a mode below zero":                    {file(`"mode":-1`), "mode -1"},
		"a source elsewhere":                   {file(`"contents":{"source":"https://example.com/x"}`), "https"},
		"a data URL without data":              {file(`"contents":{"source":"data:x"}`), "comma"},
		"a data URL that is not escaped":       {file(`"contents":{"source":"data:,%zz"}`), "source"},
		"a data URL that is not base64":        {file(`"contents":{"source":"data:;base64,!"}`), "base64"},
		"an unknown compression":               {file(`"contents":{"compression":"xz","source":"data:,x"}`), "xz"},
		"contents that are not compressed":     {file(`"contents":{"compression":"gzip","source":"data:,x"}`), "gzip"},
		"a relative path in Ignition":          {ignitionOf(`"storage":{"files":[{"path":"x"}]}`), "absolute"},
		"a path twice":                         {ignitionOf(`"storage":{"files":[{"path":"/x"},{"path":"/./x"}]}`), "twice"},
		"an SSH key twice":                     {ignitionOf(`"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["k","k"]}]}`), "twice"},
		"a unit without a kind":                {ignitionOf(`"systemd":{"units":[{"name":"kubelet"}]}`), "kubelet"},
		"a unit elsewhere":                     {ignitionOf(`"systemd":{"units":[{"name":"../a.service"}]}`), "a.service"},
		"a drop-in that systemd does not read": {ignitionOf(`"systemd":{"units":[{"name":"a.service","dropins":[{"name":"b"}]}]}`), ".conf"},
		"a merge":                              {`{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"data:,x"}]}}}`, "merge"},
		"a replacement that is none":           {`{"ignition":{"version":"3.4.0","config":{"replace":{"source":"data:,x"}}}}`, "replace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Apply([]byte(c.data))
			if err == nil || errors.Is(err, ErrUnknownFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a refusal that says %q", err, c.want)
			}
		})
	}
}

func TestOtherUserDataIsNotOurs(t *testing.T) {
	for name, data := range map[string]string{
		"nothing": "", "a script": "#!/bin/sh\n", "a script, compressed": pack(t, "#!/bin/sh\n"), "another header": "#cloud-configuration\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Apply([]byte(data)); !errors.Is(err, ErrUnknownFormat) {
				t.Errorf("got %v, want ErrUnknownFormat", err)
			}
		})
	}
}

func TestReadFindsFilesByRelativeNames(t *testing.T) {
	root := &Root{Files: map[string]File{"/etc/kubernetes/pki/ca.crt": {Content: "x"}}}
	for _, name := range []string{"pki/ca.crt", "/etc/kubernetes/pki/ca.crt", "../kubernetes/pki/ca.crt"} {
		if got, err := root.Read("/etc/kubernetes", name); err != nil || got != "x" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := root.Read("/etc", "pki/ca.crt"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/etc/pki/ca.crt") {
		t.Errorf("got %v, want an error that names the path", err)
	}
}

// FuzzApply holds that whatever is laid out could be on a disk.
func FuzzApply(f *testing.F) {
	f.Add("#cloud-config\nwrite_files: [{path: /x, content: y, permissions: '0600', encoding: b64, append: true}]\n")
	f.Add(pack(f, "#cloud-config\n"))
	f.Add(ignitionOf(`"storage":{"files":[{"path":"/x","mode":384,"contents":{"source":"data:;base64,eA==","compression":"gzip"}}]},"systemd":{"units":[{"name":"a.service","contents":"b"}]}`))
	f.Fuzz(func(t *testing.T, data string) {
		root, err := Apply([]byte(data))
		if err != nil {
			return
		}
		for name, file := range root.Files {
			if !path.IsAbs(name) || path.Clean(name) != name || file.Mode > maxMode {
				t.Errorf("laid out %q with mode %o", name, file.Mode)
			}
		}
	})
}
