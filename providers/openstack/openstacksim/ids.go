package openstacksim

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// newID returns an id that was never there before.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuidOf(b)
}

// namedID returns the id of something that has no other: it follows from its kind and name.
func namedID(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return uuidOf([16]byte(sum[:16]))
}

// hexID is namedID without dashes, as Keystone writes them.
func hexID(kind, name string) string { return withoutDashes(namedID(kind, name)) }

func withoutDashes(id string) string { return strings.ReplaceAll(id, "-", "") }

func uuidOf(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// isUUID says whether s is one.
func isUUID(s string) bool { return uuidForm.MatchString(s) }
