package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// record is what is kept of a part that passed, so that nobody runs it again in vain.
type record struct {
	Result
	// Inputs is the hash of what the part was made from.
	Inputs string
	At     time.Time
}

// Long runs parts of `make test-long`. It remembers in folder which passed.
type Long struct {
	Runner Runner
	Tree   *Tree
	// Folder keeps the results.
	Folder string
	// Again has parts run that passed before, although none of their inputs has changed.
	Again bool
	// Special says that the parts are not run as usual, such as a few of their tests. Then nothing
	// is remembered, and nothing that was is believed.
	Special bool
}

// Run runs parts one after the other, those after a failed one, too, and prints a summary. A part
// that passed is left out while its inputs stay the same: a run that was interrupted goes on where
// it stopped. Run returns an error that wraps [ErrFailed] where a part failed.
func (l Long) Run(ctx context.Context, parts []Part) error {
	var results []Result
	for _, part := range parts {
		if ctx.Err() != nil {
			break
		}
		result, err := l.part(ctx, part)
		if err != nil {
			return errors.Join(err, Summarize(l.Runner.Out, results))
		}
		results = append(results, result)
	}
	return errors.Join(ctx.Err(), Summarize(l.Runner.Out, results))
}

func (l Long) part(ctx context.Context, part Part) (Result, error) {
	in, err := l.Tree.Inputs(ctx, part)
	if err != nil {
		return Result{}, err
	}
	hash, err := in.Hash()
	if err != nil {
		return Result{}, err
	}
	if before, ok := l.passed(part.Name, hash); ok && !l.Again && !l.Special {
		return Result{
			Name: part.Name, Passed: true,
			Skipped: fmt.Sprintf("it passed in %.0f s on %s, and its inputs are the same (AGAIN=1 repeats it)", before.Wall.Seconds(), before.At.Format(time.DateTime)),
		}, nil
	}
	result := l.Runner.Run(ctx, part.Name)
	if !result.Passed || l.Special {
		return result, nil
	}
	return result, l.keep(record{Result: result, Inputs: hash, At: time.Now().UTC()})
}

// passed returns the record of a part that passed with inputs of this hash.
func (l Long) passed(name, hash string) (record, bool) {
	raw, err := os.ReadFile(l.file(name))
	if err != nil {
		return record{}, false
	}
	var before record
	if err := json.Unmarshal(raw, &before); err != nil {
		return record{}, false
	}
	return before, before.Passed && before.Inputs == hash
}

func (l Long) keep(r record) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("keep the result of %s: %w", r.Name, err)
	}
	if err := os.MkdirAll(l.Folder, 0o755); err != nil {
		return fmt.Errorf("keep the result of %s: %w", r.Name, err)
	}
	if err := os.WriteFile(l.file(r.Name), append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep the result of %s: %w", r.Name, err)
	}
	return nil
}

func (l Long) file(name string) string { return filepath.Join(l.Folder, name+".json") }
