package bootstrap

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/unit"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// unitPattern is a unit's name.
var unitPattern = regexp.MustCompile(`^[a-zA-Z0-9:_.@-]+\.(service|socket|timer|path|mount|automount|swap|target|slice)$`)

// addOwn adds the operator's files and units. None may replace one of the machine's own: a machine
// does not boot with an Ignition configuration that has two of one name.
func (all *contents) addOwn(m *clusterv1alpha1.Machine, files []File, units []Unit) error {
	taken := map[string]bool{kubeletConfigPath: true, kubeconfigPath: true, hostnamePath: true}
	if m.Spec.ProviderSpec.Value.OperatingSystem == clusterv1alpha1.OperatingSystemFlatcar {
		for _, u := range imageUnits {
			taken[path.Join(unitDirectory, u.Name)] = true
		}
	}
	for _, f := range all.files {
		taken[f.Path] = true
	}
	for _, u := range all.units {
		taken[path.Join(unitDirectory, u.Name)] = true
	}
	for i, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || !isPlainText(f.Path) || !isSingleLine(f.Path) || f.Path == "/" {
			return fmt.Errorf("files[%d].path: %q must be an absolute path, and clean", i, f.Path)
		}
		if taken[f.Path] {
			return fmt.Errorf("files[%d].path: %s is there already, or Millwright's own", i, f.Path)
		}
		taken[f.Path] = true
	}
	for i, u := range units {
		if err := checkUnit(u); err != nil {
			return fmt.Errorf("units[%d] %q: %w", i, u.Name, err)
		}
		if taken[path.Join(unitDirectory, u.Name)] {
			return fmt.Errorf("units[%d] %q: is there already, or Millwright's own", i, u.Name)
		}
		taken[path.Join(unitDirectory, u.Name)] = true
	}
	all.files = append(all.files, files...)
	all.units = append(all.units, units...)
	return nil
}

// checkUnit reads a unit as Ignition does: with one that it cannot read no machine would boot.
func checkUnit(u Unit) error {
	if !unitPattern.MatchString(u.Name) || len(u.Name) > validation.DNS1123SubdomainMaxLength {
		return errors.New("the name must be a unit's with its suffix, such as agent.service")
	}
	options, err := unit.DeserializeOptions(strings.NewReader(u.Content))
	if err != nil {
		return fmt.Errorf("content: %w", err)
	}
	if u.Content == "" || !utf8.ValidString(u.Content) || strings.ContainsRune(u.Content, 0) {
		return errors.New("content: must be a unit of systemd, as text")
	}
	isInstall := func(o *unit.UnitOption) bool { return o.Section == "Install" }
	if u.Enabled && !slices.ContainsFunc(options, isInstall) {
		return errors.New("content: needs a section [Install] to be enabled, such as one with WantedBy=multi-user.target")
	}
	return nil
}
