package pack

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Chart packs the chart in a folder as the one of a release: its version, and the registry that its
// images come from. It returns the file that it writes to the folder out.
func Chart(folder, out, version, registry string, at time.Time) (string, error) {
	files, err := Folder(folder, filepath.Base(folder))
	if err != nil {
		return "", err
	}
	name := filepath.Base(folder)
	for file, stamps := range map[string][][2]string{
		"Chart.yaml":  {{"\nversion: 0.0.0\n", "\nversion: " + strings.TrimPrefix(version, "v") + "\n"}, {"\nappVersion: v0.0.0\n", "\nappVersion: " + version + "\n"}},
		"values.yaml": {{"\n  registry: localhost\n", "\n  registry: " + registry + "\n"}},
	} {
		if err := stamp(files, name+"/"+file, stamps); err != nil {
			return "", err
		}
	}
	path := filepath.Join(out, fmt.Sprintf("%s-%s.tgz", name, strings.TrimPrefix(version, "v")))
	return path, Archive(path, files, at)
}

// stamp replaces texts of a file, each of which stands there once.
func stamp(files []File, name string, stamps [][2]string) error {
	for i := range files {
		if files[i].Name != name {
			continue
		}
		for _, s := range stamps {
			if n := bytes.Count(files[i].Content, []byte(s[0])); n != 1 {
				return fmt.Errorf("%s: %q stands there %d times, want once", name, strings.TrimSpace(s[0]), n)
			}
			files[i].Content = bytes.Replace(files[i].Content, []byte(s[0]), []byte(s[1]), 1)
		}
		return nil
	}
	return fmt.Errorf("%s is missing", name)
}
