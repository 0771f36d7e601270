package testcloud_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

type entry struct {
	Thing int `json:"thing"`
}

// read returns the entries of a journal.
func read(path string) (found []int, err error) {
	err = testcloud.ReadJournal(path, func(e entry) error {
		found = append(found, e.Thing)
		return nil
	})
	return found, err
}

func TestAJournalKeepsWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if found, err := read(path); err != nil || len(found) != 0 {
		t.Errorf("before there is one: %v, %v", found, err)
	}
	j, err := testcloud.NewJournal(path, []entry{{1}, {2}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(entry{3}, entry{4}), j.Close()); err != nil {
		t.Fatal(err)
	}
	if found, err := read(path); err != nil || !slices.Equal(found, []int{1, 2, 3, 4}) {
		t.Errorf("written: %v, %v", found, err)
	}
}

func TestATornEntryIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for text, want := range map[string]string{
		"{\"thing\":1}\n{\"thi":        "",
		"{\"thing\":1}\n{\"thing\":2}": "",
		"{\"thing\":1}\nnonsense\n":    "line 2: invalid character 'o' in literal null (expecting 'u')",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := read(path)
		if !slices.Equal(found, []int{1}) || err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%q: %v, %v", text, found, err)
		}
	}
}

func TestPagesEndWithTheLimitOrTheSize(t *testing.T) {
	var h testcloud.History
	for key := range 3000 {
		h.Note(int64(key + 1))
	}
	page := func(limit int32, bytes int) int {
		found, more := testcloud.Page(h.After(0), limit, func(ch testcloud.Change) (int64, int) {
			if ch.Key%2 == 0 {
				return 0, 0
			}
			return ch.Key, bytes
		})
		if !more {
			t.Errorf("limit %d, %d bytes each: that is all", limit, bytes)
		}
		return len(found)
	}
	if small, big, heavy := page(10, 0), page(5000, 0), page(0, 1<<20); small != 10 || big != 1000 || heavy != 3 {
		t.Errorf("pages of %d, %d and %d", small, big, heavy)
	}
	h.Note(1)
	h.Tidy(1, func(ch testcloud.Change) bool { return ch.Revision == 3001 })
	if left := h.After(0); len(left) != 1 || left[0].Key != 1 || len(h.After(3001)) != 0 {
		t.Errorf("tidied: %v", left)
	}
}
