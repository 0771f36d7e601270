package wire

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/proto/redact"
)

// Bounds on what is shown of a console: it ends up in conditions.
const (
	// MaxConsoleLines is how many lines are shown, the last ones.
	MaxConsoleLines = 20
	// maxConsoleLine is how many bytes of a line are shown, its first ones.
	maxConsoleLine = 240
)

var (
	// escapeSequence is what moves a cursor, colours text or sets a title: CSI, OSC and its kin up
	// to their terminator, and escapes of two characters. Source: ECMA-48, sections 5.4 and 5.6.
	escapeSequence = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])`)
	// bootstrapToken is the form of every bootstrap token. Source: k8s.io/cluster-bootstrap,
	// token/api.BootstrapTokenPattern, here anywhere in a line.
	bootstrapToken = regexp.MustCompile(`[a-z0-9]{6}\.[a-z0-9]{16}`)
	// number is what differs between a line and its repetition: times, ids of processes.
	number = regexp.MustCompile(`[0-9]+`)
)

// ConsoleLines returns the last lines that a VM has written to its console, as they may be shown to
// people. They are valid UTF-8 without escape sequences, control characters and empty lines. They
// hold no secret of the request, no hidden one, and nothing that looks like a bootstrap token.
// Secrets are taken out before anything is cut off, else a part of one could stay. Of lines that
// differ in numbers alone there is the last: a service that starts again and again must not push
// out its cause.
func ConsoleLines(request *driverv1alpha1.GetConsoleOutputRequest, output []byte, hidden ...[]byte) []string {
	if len(output) >= contract.MaxConsoleBytes {
		// What its first line began with, such as a half of a secret, has been cut off.
		_, output, _ = bytes.Cut(output, []byte("\n"))
	}
	text := readable(output)
	text = redact.Of(request).And(hidden...).Text(text)
	text = bootstrapToken.ReplaceAllString(text, redact.Mark)
	return lastLines(strings.Split(text, "\n"))
}

// lastLines returns the last lines in their order, bounded, none of them empty or repeated.
func lastLines(lines []string) []string {
	var last []string
	seen := map[string]bool{"": true}
	for _, line := range slices.Backward(lines) {
		line = messages.OneLine(line, maxConsoleLine)
		if kind := number.ReplaceAllString(line, "0"); !seen[kind] && len(last) < MaxConsoleLines {
			seen[kind] = true
			last = append(last, line)
		}
	}
	slices.Reverse(last)
	return last
}

// readable is output as text of which only line feeds are left to control anything. What is not
// UTF-8 is replaced.
func readable(output []byte) string {
	text := strings.ToValidUTF8(string(output), "\uFFFD")
	text = escapeSequence.ReplaceAllString(text, "")
	// A lone carriage return writes a line anew, as progress bars do: that is another line.
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ").Replace(text)
	return strings.Map(func(r rune) rune {
		if r != '\n' && (r < ' ' || r == 0x7f) {
			return -1
		}
		return r
	}, text)
}
