package discovery

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A word of an API server.
type word struct {
	says string
	err  error
}

func (w word) ask(*string) (string, error) { return w.says, w.err }

var (
	forbids = word{err: apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("no"))}
	expired = word{err: apierrors.NewUnauthorized("expired")}
	lost    = word{err: errLostRights}
	away    = word{err: errors.New("connection refused")}
	broken  = word{err: apierrors.NewInternalError(errors.New("no leader"))}
	busy    = word{err: apierrors.NewTooManyRequestsError("later")}
	slow    = word{err: apierrors.NewTimeoutError("slow", 1)}
	missing = word{err: &IncompleteError{Message: "missing"}}
)

// TestAnAnswerEndsWhenTheAPIServerRefusesForLong: each word is said for so many minutes.
func TestAnAnswerEndsWhenTheAPIServerRefusesForLong(t *testing.T) {
	type spell struct {
		word    word
		minutes int
	}
	const most = int(keptRefused / time.Minute)
	for name, c := range map[string]struct {
		spells []spell
		ends   bool
	}{
		"forbidden for long":             {[]spell{{forbids, most + 1}}, true},
		"forbidden for moments":          {[]spell{{forbids, most}}, false},
		"its credentials are expired":    {[]spell{{expired, most + 1}}, true},
		"rights are lost":                {[]spell{{lost, most + 1}}, true},
		"away":                           {[]spell{{away, 500}}, false},
		"without its store":              {[]spell{{broken, 500}}, false},
		"busy":                           {[]spell{{busy, 500}}, false},
		"slow":                           {[]spell{{slow, 500}}, false},
		"it forbids once it has started": {[]spell{{away, 500}, {forbids, 2}, {away, 500}, {forbids, 2}}, false},
		"away in between":                {[]spell{{forbids, most/2 + 1}, {away, 1}, {forbids, most/2 + 1}}, true},
		"confirmed in between":           {[]spell{{forbids, most}, {word{says: "answer"}, 1}, {forbids, most}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var a Answer[string]
			now := time.Now()
			if _, err := a.Get(now, word{says: "answer"}.ask); err != nil {
				t.Fatal(err)
			}
			var last error
			for _, s := range c.spells {
				for range s.minutes {
					if last != nil {
						t.Fatalf("it ends too early: %v", last)
					}
					now = now.Add(kept)
					_, last = a.Get(now, s.word.ask)
				}
			}
			if (last != nil) != c.ends {
				t.Errorf("in the end the error is %v", last)
			}
			if got, err := a.Get(now.Add(kept), word{says: "another"}.ask); got != "another" || err != nil {
				t.Errorf("then it is %q, %v", got, err)
			}
		})
	}
}

// Of two asks the one that began later has the newer answer, whichever comes first.
func TestAnOlderAskReplacesNoNewerAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		older, newer word
		want         string
		wantErr      error
	}{
		"both answer":              {word{says: "old"}, word{says: "new"}, "new", nil},
		"the older one is over":    {missing, word{says: "new"}, "new", nil},
		"the older one is away":    {away, word{says: "new"}, "new", nil},
		"the newer one is over":    {word{says: "old"}, missing, "", missing.err},
		"the newer one is away":    {word{says: "old"}, away, "old", nil},
		"the newer one is refused": {word{says: "old"}, forbids, "first", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var a Answer[string]
			now := time.Now()
			if _, err := a.Get(now, word{says: "first"}.ask); err != nil {
				t.Fatal(err)
			}
			now = now.Add(kept)
			got, err := a.Get(now, func(*string) (string, error) {
				now = now.Add(kept)
				_, _ = a.Get(now, c.newer.ask)
				return c.older.says, c.older.err
			})
			again, errAgain := a.Get(now, word{says: "early"}.ask)
			if got != c.want || !errors.Is(err, c.wantErr) || again != c.want || !errors.Is(errAgain, c.wantErr) {
				t.Errorf("it is %q, %v, then %q, %v; want %q, %v", got, err, again, errAgain, c.want, c.wantErr)
			}
		})
	}
}

// What is missing is not asked for at each reconcile, and what has been mended is found soon.
func TestWhatIsIncompleteHoldsForSeconds(t *testing.T) {
	var a Answer[string]
	now := time.Now()
	want := func(at time.Duration, w word, want string, wantErr error) {
		t.Helper()
		if got, err := a.Get(now.Add(at), w.ask); got != want || !errors.Is(err, wantErr) {
			t.Errorf("after %s it is %q, %v, want %q, %v", at, got, err, want, wantErr)
		}
	}
	want(0, missing, "", missing.err)
	want(keptIncomplete-1, word{says: "early"}, "", missing.err)
	want(keptIncomplete, away, "", away.err)
	want(keptIncomplete, missing, "", missing.err)
	want(2*keptIncomplete, word{says: "mended"}, "mended", nil)
	want(3*keptIncomplete, missing, "mended", nil)
}
