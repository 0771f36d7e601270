package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/millwright-dev/millwright/cmd/top"
)

// What a terminal is told to begin at the top, to forget the rest of a line, and all that is below.
const (
	cursorHome = "\x1b[H"
	clearBelow = "\x1b[J"
)

func topCommand(where *cluster) *cobra.Command {
	var all, once bool
	var interval time.Duration
	format := newFormat()
	command := &cobra.Command{
		Use:   "top",
		Short: "Follow how MachineDeployments get on: progress, phases, rates and the time left; Ctrl-C ends it",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if interval < 100*time.Millisecond {
				return errors.New("--interval: at least 100ms")
			}
			namespace, err := where.namespace(all)
			if err != nil {
				return err
			}
			fleet, err := where.watch(command.Context(), namespace)
			if err != nil {
				return err
			}
			s := screen{out: command.OutOrStdout(), namespaces: all}
			if file, ok := s.out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && !once && format.value == "" {
				s.terminal = file
			}
			return s.follow(command.Context(), fleet, interval, once, format)
		},
	}
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Of all namespaces.")
	command.Flags().BoolVar(&once, "once", false, "Print once, without rates, and end.")
	command.Flags().DurationVar(&interval, "interval", time.Second, "How often to look.")
	format.add(command.Flags())
	return command
}

// screen is where frames are shown.
type screen struct {
	out io.Writer
	// terminal is out if that is one, else nil.
	terminal *os.File
	// namespaces: the deployments are of several.
	namespaces bool
}

// follow shows frames until ctx ends, or only one.
func (s screen) follow(ctx context.Context, fleet *watchedFleet, interval time.Duration, once bool, format *format) error {
	var history top.History
	var before top.Frame
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		objects, err := readFleet(ctx, fleet.reader, fleet.namespace)
		if err != nil {
			return ignoreInterrupt(ctx, err)
		}
		frame := history.Add(objects, time.Now())
		if err := format.print(s.out, frame, func(io.Writer) error { return s.show(frame, before, once) }); err != nil || once {
			return err
		}
		before = frame
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s screen) show(frame, before top.Frame, once bool) error {
	if once {
		return frame.Table(s.out, top.Options{Namespaces: s.namespaces})
	}
	if s.terminal == nil {
		return frame.Lines(s.out, before)
	}
	_, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil {
		height = 0
	}
	if before.Time.IsZero() {
		_, _ = fmt.Fprint(s.out, cursorHome+clearBelow)
	}
	_, _ = fmt.Fprint(s.out, cursorHome)
	err = frame.Table(lineClearer{s.out}, top.Options{Lines: height, Coloured: os.Getenv("NO_COLOR") == "", Namespaces: s.namespaces})
	_, _ = fmt.Fprint(s.out, clearBelow)
	return err
}

// lineClearer writes lines over others that may be longer.
type lineClearer struct{ out io.Writer }

func (l lineClearer) Write(line []byte) (int, error) {
	const clearLine = "\x1b[K"
	_, err := l.out.Write(append([]byte(clearLine), line...))
	return len(line), err
}
