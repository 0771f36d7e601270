package sdk

import (
	"log/slog"

	"github.com/millwright-dev/millwright/proto/redact"
)

// Redacted returns a message in a form that may be logged: fields marked debug_redact are replaced,
// and of any other bytes only their number is told. This package logs messages in this way alone,
// with the call's secrets taken out of their texts as well: no Go printer honours debug_redact.
// What is not a message is told by its type. The work is done only if the value is really logged.
func Redacted(message any) slog.LogValuer { return (*redact.Secrets)(nil).Message(message) }
