package userdata

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/vincent-petithory/dataurl"
)

// node is what a first boot makes of user data: files with their permissions, and who may log in.
// Units are files, too.
type node struct {
	hostname string
	keys     []string
	files    map[string]file
	enabled  map[string]bool
}

type file struct {
	content string
	mode    int
}

func (n *node) add(t *testing.T, name string, f file) {
	t.Helper()
	if _, twice := n.files[name]; twice {
		t.Errorf("%s is written twice", name)
	}
	n.files[name] = f
}

// ignite reads an Ignition configuration by Ignition's own parser and validator, which must have
// nothing to say.
func ignite(t *testing.T, data []byte) node {
	t.Helper()
	config, report, err := ignition.Parse(data)
	if err != nil || len(report.Entries) > 0 {
		t.Fatalf("Ignition says: %v\n%s", err, report.String())
	}
	n := node{files: map[string]file{}, enabled: map[string]bool{}}
	for _, f := range config.Storage.Files {
		content, err := dataurl.DecodeString(*f.Contents.Source)
		if err != nil {
			t.Fatal(err)
		}
		n.add(t, f.Path, file{string(content.Data), *f.Mode})
	}
	for _, u := range config.Systemd.Units {
		n.enabled[u.Name] = u.Enabled != nil && *u.Enabled
		if u.Contents != nil {
			n.add(t, path.Join(units, u.Name), file{*u.Contents, 0o644})
		}
	}
	for _, u := range config.Passwd.Users {
		for _, key := range u.SSHAuthorizedKeys {
			n.keys = append(n.keys, string(key))
		}
	}
	n.hostname = strings.TrimSuffix(n.files["/etc/hostname"].content, "\n")
	delete(n.files, "/etc/hostname")
	return n
}

const units = "/etc/systemd/system"

// cloudConfig is what cloud-init reads.
type cloudConfig struct {
	Hostname   string   `json:"hostname"`
	Keys       []string `json:"ssh_authorized_keys"`
	Upgrade    bool     `json:"package_upgrade"`
	Reboot     bool     `json:"package_reboot_if_required"`
	WriteFiles []struct {
		Path, Content, Encoding, Owner, Permissions string
	} `json:"write_files"`
	RunCommands [][]string `json:"runcmd"`
}

// validate is a program for cloud-init's own Python: it reads each file NAME.yaml of a folder with
// cloud-init's YAML parser, holds it to cloud-init's schema, and writes NAME.json.
const validate = `
import json, os, sys, yaml
from cloudinit.config.schema import get_schema, validate_cloudconfig_schema
schema = get_schema()
for name in sorted(os.listdir(sys.argv[1])):
    path = os.path.join(sys.argv[1], name)
    with open(path, "rb") as f:
        config = yaml.load(f.read().decode("utf-8"), Loader=yaml.CSafeLoader)
    try:
        validate_cloudconfig_schema(config, schema, strict=True)
    except Exception as error:
        sys.exit(name + ": " + str(error))
    with open(path[:-len("yaml")] + "json", "w") as f:
        json.dump(config, f)
`

// cloudInit reads cloud-configs, all at once.
func cloudInit(t *testing.T, all map[int][]byte) map[int]node {
	t.Helper()
	dir := t.TempDir()
	for i, data := range all {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".yaml"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, pythonOf(t, "cloud-init"), "-c", validate, dir)
	nodes := map[int]node{}
	for i := range all {
		data, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var read cloudConfig
		decoder := json.NewDecoder(strings.NewReader(string(data)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&read); err != nil {
			t.Fatal(err)
		}
		nodes[i] = read.boot(t)
	}
	return nodes
}

// pythonOf returns the interpreter of a program in Python, which has its packages.
func pythonOf(t *testing.T, program string) string {
	t.Helper()
	file, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%v: install Debian's package %s", err, program)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	interpreter, is := strings.CutPrefix(line, "#!")
	if !is {
		t.Fatalf("%s begins with %q", file, line)
	}
	return strings.Fields(interpreter)[0]
}

// boot is what cloud-init does.
func (c cloudConfig) boot(t *testing.T) node {
	t.Helper()
	n := node{hostname: c.Hostname, keys: c.Keys, files: map[string]file{}, enabled: map[string]bool{}}
	for _, f := range c.WriteFiles {
		mode, err := strconv.ParseInt(f.Permissions, 8, 32)
		if err != nil || f.Owner != "root:root" {
			t.Errorf("%s belongs to %s with permissions %s", f.Path, f.Owner, f.Permissions)
		}
		content := []byte(f.Content)
		if f.Encoding == "b64" {
			if content, err = base64.StdEncoding.DecodeString(f.Content); err != nil {
				t.Error(err)
			}
		}
		n.add(t, f.Path, file{string(content), int(mode)})
	}
	if len(c.RunCommands) != 3 {
		t.Fatalf("commands are %q", c.RunCommands)
	}
	for _, unit := range c.RunCommands[1][2:] {
		n.enabled[unit] = true
	}
	return n
}

// run runs a program that must be there and succeed.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}
