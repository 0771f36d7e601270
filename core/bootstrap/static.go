package bootstrap

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// static holds the files that are the same on every machine, below a folder for whom they are for:
//
//	common               every machine
//	ubuntu, flatcar      machines of this operating system
//	autoupdate/SYSTEM    with disableAutoUpdate
//	metadata             with blockMetadata
//	watchdog             with a kubelet that tells systemd that it is alive
//
//go:embed all:static
var static embed.FS

// enabledUnits start at each boot; the others are started by them.
var enabledUnits = []string{
	"millwright-bootstrap.service", "millwright-metadata.service", "containerd.service", "kubelet.service",
	"millwright-report.service", "millwright-cleanup.path",
}

// addStatic adds the static files and units.
func (all *contents) addStatic(m *clusterv1alpha1.Machine, c Config) error {
	value := &m.Spec.ProviderSpec.Value
	folders := []string{"common", string(value.OperatingSystem)}
	if value.OperatingSystemSpec.DisableAutoUpdate {
		folders = append(folders, path.Join("autoupdate", string(value.OperatingSystem)))
	}
	if c.BlockMetadata {
		folders = append(folders, "metadata")
	}
	if hasWatchdog(m.Spec.Versions.Kubelet) {
		folders = append(folders, "watchdog")
	}
	known, err := staticFolders()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		all.files = append(all.files, known[folder].files...)
		all.units = append(all.units, known[folder].units...)
	}
	return nil
}

// staticFolders returns the contents of each folder. They are read once.
var staticFolders = sync.OnceValues(func() (map[string]contents, error) {
	known := map[string]contents{}
	for _, folder := range []string{"common", "ubuntu", "flatcar", "autoupdate/ubuntu", "autoupdate/flatcar", "metadata", "watchdog"} {
		read, err := readFolder(path.Join("static", folder))
		if err != nil {
			return nil, err
		}
		known[folder] = read
	}
	return known, nil
})

// hasWatchdog says whether the kubelet answers systemd's watchdog. One that does not would be
// killed every half minute. Source: https://kubernetes.io/docs/reference/node/systemd-watchdog.
func hasWatchdog(kubelet string) bool {
	v, err := version.ParseSemantic(kubelet)
	return err == nil && v.AtLeast(version.MajorMinor(1, 32))
}

func readFolder(folder string) (contents, error) {
	var all contents
	err := fs.WalkDir(static, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		file := File{Path: strings.TrimPrefix(name, folder), Content: string(content)}
		if path.Dir(file.Path) == unitDirectory {
			unit := path.Base(file.Path)
			all.units = append(all.units, Unit{Name: unit, Content: file.Content, Enabled: slices.Contains(enabledUnits, unit)})
			return nil
		}
		if strings.HasPrefix(file.Path, "/opt/bin/") {
			file.Mode = 0o755
		}
		all.files = append(all.files, file)
		return nil
	})
	if err != nil {
		return contents{}, fmt.Errorf("read embedded %s: %w", folder, err)
	}
	return all, nil
}
