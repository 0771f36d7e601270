package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
)

// maxLine is how much of a line is logged.
const maxLine = 4 << 10

// output logs what a driver writes, a line at a time. A line that is a JSON object, as structured loggers write them, is logged as
// one, at its level. It is safe for concurrent use.
type output struct {
	log *slog.Logger

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
	if len(o.rest) > maxLine {
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
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	o.line = string(line)
	var said map[string]any
	if json.Unmarshal(line, &said) != nil {
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
