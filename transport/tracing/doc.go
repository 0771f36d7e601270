// Package tracing makes spans of the calls between core and drivers, and sends them to an
// OpenTelemetry collector. A span has names, codes and times of a call, never a payload nor the
// words of an error, since secrets may hide in these.
package tracing
