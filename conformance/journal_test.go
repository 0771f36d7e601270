package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestJournalTellsWhatIsLeft(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	j, err := openJournal(state, "run")
	if err != nil {
		t.Fatal(err)
	}
	ref := func(uid string) *driverv1alpha1.MachineRef {
		return &driverv1alpha1.MachineRef{Namespace: "ns", Name: "m-" + uid, Uid: uid}
	}
	for _, uid := range []string{"a", "b", "c"} {
		if err := j.intend("cluster", ref(uid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.gone(ref("b")); err != nil {
		t.Fatal(err)
	}
	// A run that was killed may have written half a line.
	if _, err := j.file.WriteString(`{"uid":"d`); err != nil {
		t.Fatal(err)
	}
	j.close()
	got, err := readJournal(state, "run")
	want := []entry{{Cluster: "cluster", Namespace: "ns", Name: "m-a", UID: "a"}, {Cluster: "cluster", Namespace: "ns", Name: "m-c", UID: "c"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	// Going on with it must not hide the next line.
	if j, err = openJournal(state, "run"); err != nil {
		t.Fatal(err)
	}
	if err := j.gone(ref("a")); err != nil {
		t.Fatal(err)
	}
	j.close()
	if got, err := readJournal(state, "run"); err != nil || len(got) != 1 || got[0].UID != "c" {
		t.Errorf("after half a line and a whole one there is left %v (%v)", got, err)
	}
}

func TestJournalsOfNoRun(t *testing.T) {
	state := t.TempDir()
	for _, id := range []string{"", "../x", `a\b`} {
		if _, err := openJournal(state, id); err == nil {
			t.Errorf("%q: opened", id)
		}
	}
	if _, err := readJournal(state, "never"); err == nil {
		t.Error("read a journal that is not there")
	}
	if files, err := os.ReadDir(state); err != nil || len(files) > 0 {
		t.Errorf("there are files: %v (%v)", files, err)
	}
}
