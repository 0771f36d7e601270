package bootstrap

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// ignitionVersion of the format: https://coreos.github.io/ignition/configuration-v3_4/.
const ignitionVersion = "3.4.0"

// ignition is the part of Ignition's format that is used.
type ignition struct {
	Ignition ignitionHeader  `json:"ignition"`
	Passwd   *ignitionPasswd `json:"passwd,omitempty"`
	Storage  ignitionStorage `json:"storage"`
	Systemd  ignitionSystemd `json:"systemd"`
}

type ignitionHeader struct {
	Version string `json:"version"`
}

type ignitionPasswd struct {
	Users []ignitionUser `json:"users"`
}

type ignitionUser struct {
	Name              string   `json:"name"`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
}

type ignitionStorage struct {
	Files []ignitionFile `json:"files"`
}

type ignitionFile struct {
	Path      string           `json:"path"`
	Mode      uint32           `json:"mode"`
	Overwrite bool             `json:"overwrite"`
	Contents  ignitionContents `json:"contents"`
}

type ignitionContents struct {
	Source string `json:"source"`
}

type ignitionSystemd struct {
	Units []ignitionUnit `json:"units"`
}

type ignitionUnit struct {
	Name     string `json:"name"`
	Enabled  *bool  `json:"enabled,omitempty"`
	Mask     bool   `json:"mask,omitempty"`
	Contents string `json:"contents,omitempty"`
}

// imageUnits are the image's own: containerd runs by a drop-in, and docker would run a second one.
var imageUnits = []ignitionUnit{
	{Name: "containerd.service", Enabled: new(true)}, {Name: "docker.service", Mask: true}, {Name: "docker.socket", Mask: true},
}

// hostnamePath is where the machine's name stands.
const hostnamePath = "/etc/hostname"

// encodeIgnition writes an Ignition configuration for Flatcar.
func encodeIgnition(m *clusterv1alpha1.Machine, all contents) ([]byte, error) {
	config := ignition{Ignition: ignitionHeader{Version: ignitionVersion}}
	if keys := m.Spec.ProviderSpec.Value.SSHPublicKeys; len(keys) > 0 {
		// Ignition refuses a key that is given twice.
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
		config.Passwd = &ignitionPasswd{Users: []ignitionUser{{Name: "core", SSHAuthorizedKeys: keys}}}
	}
	for _, f := range append([]File{{Path: hostnamePath, Content: m.Name + "\n"}}, all.files...) {
		source := "data:;base64," + base64.StdEncoding.EncodeToString([]byte(f.Content))
		config.Storage.Files = append(config.Storage.Files, ignitionFile{
			Path: f.Path, Mode: f.mode(), Overwrite: true, Contents: ignitionContents{Source: source},
		})
	}
	for _, u := range all.units {
		config.Systemd.Units = append(config.Systemd.Units, ignitionUnit{Name: u.Name, Enabled: new(u.Enabled), Contents: u.Content})
	}
	config.Systemd.Units = append(config.Systemd.Units, imageUnits...)
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode Ignition: %w", err)
	}
	return data, nil
}
