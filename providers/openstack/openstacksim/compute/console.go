package compute

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// consoleAction shows what a server has printed, and changes nothing.
const consoleAction = "os-getConsoleOutput"

// fakeConsole is what each server of Nova's fake driver prints.
const fakeConsole = "FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE"

// maxConsole is how many bytes of a console Nova keeps, the newest. Source: MAX_CONSOLE_BYTES of
// nova/virt/libvirt/driver.py.
const maxConsole = 100 << 10

var consoleLength = regexp.MustCompile(`^-?[0-9]+$`)

// showConsole implements the action os-getConsoleOutput: the last lines, as many as asked for.
func showConsole(s *Server, argument json.RawMessage) (api.Reply, error) {
	var wanted struct {
		Length any `json:"length"`
	}
	if err := json.Unmarshal(argument, &wanted); err != nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	if text, is := wanted.Length.(string); is && !consoleLength.MatchString(text) {
		return api.Reply{}, api.Invalid("length", text, "'"+text+"' does not match '"+consoleLength.String()+"'")
	}
	if s.Hostless || s.Launched.IsZero() && s.VMState == VMBuilding {
		return api.Reply{}, api.Refuse(http.StatusConflict, "Instance %s is not ready", s.ID)
	}
	output := s.console()
	switch length := wanted.Length.(type) {
	case float64:
		output = lastLines(output, int(length))
	case string:
		n, _ := strconv.Atoi(length) // a number, as was seen above
		output = lastLines(output, n)
	}
	return api.OK(api.Object{"output": output})
}

// console is what Nova has kept of what the server has printed, without control characters.
func (s *Server) console() string {
	all := fakeConsole + s.Printed
	all = all[max(0, len(all)-maxConsole):]
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' {
			return -1
		}
		return r
	}, all)
}

// lastLines are the last n lines of a text. As in Nova, none are none, and -1 means all but the
// first.
func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	if n < 0 {
		return strings.Join(lines[min(-n, len(lines)):], "\n")
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
