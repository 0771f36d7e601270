package state

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// NewID returns an id that was never there before.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuidOf(b)
}

// NamedID returns the id of something that has no other: it follows from its kind and name.
func NamedID(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return uuidOf([16]byte(sum[:16]))
}

// HexID is NamedID without dashes, as Keystone writes them.
func HexID(kind, name string) string { return WithoutDashes(NamedID(kind, name)) }

// WithoutDashes is an id as Keystone writes it.
func WithoutDashes(id string) string { return strings.ReplaceAll(id, "-", "") }

func uuidOf(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// IsUUID says whether s is one.
func IsUUID(s string) bool { return uuidForm.MatchString(s) }
