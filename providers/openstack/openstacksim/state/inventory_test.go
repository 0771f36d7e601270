package state

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// thing is a resource that is found by its name and its colour.
type thing struct {
	Record
	Colour string `json:"colour,omitempty"`
}

// Keys implements Resource.
func (t *thing) Keys() []Key { return []Key{{ByName, t.Name}, {"colour", t.Colour}} }

func put(s *Store, inv *Inventory[*thing], name, colour string) *thing {
	t := &thing{Record: s.NewRecord("p", name), Colour: colour}
	inv.Put(t)
	return t
}

func names(things []*thing) string {
	var all []string
	for _, t := range things {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}

func TestInventoryFindsByKeyInOrder(t *testing.T) {
	s := NewStore()
	inv := NewInventory[thing]("thing", s)
	a, b, c := put(s, inv, "a", "red"), put(s, inv, "b", "blue"), put(s, inv, "c", "red")
	for _, test := range []struct{ name, got, want string }{
		{"all", names(inv.Ordered), "a b c"},
		{"one value", names(inv.With("colour", "red")), "a c"},
		{"several values", names(inv.With("colour", "red", "blue")), "a b c"},
		{"the rarest wish", names(inv.Narrowed(map[string][]string{"colour": {"red"}, ByName: {"b"}})), "b"},
		{"no wish", names(inv.Narrowed(nil)), "a b c"},
		{"a wish of what there is not", names(inv.Narrowed(map[string][]string{"colour": {"green"}})), ""},
		{"what came later", names(inv.After(a.Seq)), "b c"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", test.name, test.got, test.want)
		}
	}
	b.Colour = "red"
	inv.Put(b)
	inv.Remove(c.ID)
	if got := names(inv.With("colour", "red")); got != "a b" || inv.Count("colour", "blue") != 0 || inv.Used["p"] != 2 {
		t.Errorf("after changes: %q, %d blue, %d of the project", got, inv.Count("colour", "blue"), inv.Used["p"])
	}
}

func TestJournalKeepsWhatChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	s := NewStore()
	inv := NewInventory[thing]("thing", s)
	if err := s.Journal.Begin(path, nil); err != nil {
		t.Fatal(err)
	}
	kept, gone := put(s, inv, "kept", "red"), put(s, inv, "gone", "")
	kept.Colour = "blue" // written as it is when the line is
	if err := s.Journal.Flush(); err != nil {
		t.Fatal(err)
	}
	inv.Remove(gone.ID)
	s.Quotas.SetForAll(map[string]int64{KindVM: 3})
	if err := s.Journal.Flush(); err != nil {
		t.Fatal(err)
	}
	again := NewStore()
	restored := NewInventory[thing]("thing", again)
	err := testcloud.ReadJournal(path, func(e Entry) error {
		again.Quotas.Restore(&e)
		for _, i := range e.Items {
			if err := restored.Restore(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inv.Ordered, restored.Ordered); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if again.Quotas.Limit("p", KindVM) != 3 || again.Newest() != gone.Seq {
		t.Errorf("the quota is %d, the newest number %d", again.Quotas.Limit("p", KindVM), again.Newest())
	}
	if err := s.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	put(s, inv, "late", "")
	if err := s.Journal.Flush(); err == nil {
		t.Error("a line was written after the end")
	}
}

func TestQuotasOfAProjectGoFirst(t *testing.T) {
	q := NewStore().Quotas
	if q.Exceeds("p", KindPort, 1000, 1) {
		t.Error("without a limit there is one")
	}
	q.Begin(map[string]int64{KindPort: 2})
	q.Set("p", map[string]int64{KindPort: 5})
	q.Set("unlimited", map[string]int64{KindPort: Unlimited})
	for _, test := range []struct {
		project    string
		used, more int64
		want       bool
	}{
		{"p", 4, 1, false}, {"p", 5, 1, true}, {"other", 1, 1, false}, {"other", 2, 1, true}, {"unlimited", 100, 1, false},
	} {
		if got := q.Exceeds(test.project, KindPort, test.used, test.more); got != test.want {
			t.Errorf("%d and %d more of %s exceed the quota: %t", test.used, test.more, test.project, got)
		}
	}
}
