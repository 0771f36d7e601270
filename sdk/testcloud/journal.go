package testcloud

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Journal is an append-only file of entries, each a line of JSON.
type Journal[E any] struct {
	file *os.File
}

// ReadJournal hands over the entries of a journal, one by one. A file that is not there has none;
// an entry without its end of line was torn, and has had no effect that anybody saw.
func ReadJournal[E any](path string, restore func(E) error) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() // nothing was written
	lines := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var one E
		if err := json.Unmarshal(line, &one); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := restore(one); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
}

// NewJournal puts a journal of these entries into the place of an old one, and leaves it open for
// more.
func NewJournal[E any](path string, entries []E) (*Journal[E], error) {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal[E]{file: file}
	for _, one := range entries {
		if err := j.Append(one); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// Append adds entries, in one write: a process that is killed leaves all of them or, at worst, one
// torn line at the end.
func (j *Journal[E]) Append(entries ...E) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, one := range entries {
		if err := encoder.Encode(one); err != nil {
			return fmt.Errorf("encode journal entry: %w", err)
		}
	}
	if _, err := j.file.Write(lines.Bytes()); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// Close closes the file.
func (j *Journal[E]) Close() error { return j.file.Close() }
