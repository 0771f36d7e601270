package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
)

// maxLine is how much of a line is logged, maxRead how much is read until its end comes.
const (
	maxLine = 4 << 10
	maxRead = 64 << 10
)

// Log is where what a driver writes goes.
type Log struct {
	*slog.Logger
	// Clean takes out what nobody may read; nil: nothing. It must be safe for use by several
	// goroutines.
	Clean func(text string) string
}

func (l Log) clean(text string) string {
	if l.Clean == nil {
		return text
	}
	return l.Clean(text)
}

// output logs what a driver writes, a line at a time. A line that is a JSON object, as structured
// loggers write them, is logged as one, at its level. It is safe for concurrent use.
type output struct {
	log Log

	mu   sync.Mutex
	rest []byte
	line string
}

// Write implements io.Writer.
func (o *output) Write(written []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rest = append(o.rest, written...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole {
			break
		}
		o.tell(line)
		o.rest = rest
	}
	if len(o.rest) > maxRead {
		o.tell(o.rest)
		o.rest = nil
	}
	return len(written), nil
}

// last is the last line that was written.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.line
}

// tell logs a line.
func (o *output) tell(line []byte) {
	line = bytes.TrimRight(line, "\r ")
	if len(line) == 0 {
		return
	}
	// What is cut off could not be recognized.
	o.line = o.log.clean(string(line))
	o.line = o.line[:min(len(o.line), maxLine)]
	var said map[string]any
	if json.Unmarshal([]byte(o.line), &said) != nil {
		o.log.Info("driver wrote", "line", o.line)
		return
	}
	o.log.Log(context.Background(), levelOf(said), "driver wrote", "said", said)
}

// levelOf is the level of a structured line: as slog and most others name it, or hclog.
func levelOf(said map[string]any) slog.Level {
	var level slog.Level
	for _, key := range []string{"level", "@level"} {
		if text, ok := said[key].(string); ok && level.UnmarshalText([]byte(text)) == nil {
			return level
		}
	}
	return slog.LevelInfo
}
