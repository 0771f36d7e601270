package state

import "time"

// Record is what every resource has.
type Record struct {
	// Seq orders all resources by their making.
	Seq         int64     `json:"seq"`
	ID          string    `json:"id"`
	Project     string    `json:"project"`
	Name        string    `json:"name,omitempty"`
	Description string    `json:"description,omitempty"`
	Tags        []string  `json:"tags,omitempty"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
	// Given says that it belongs to the world as it was at the beginning.
	Given bool `json:"given,omitempty"`
}

// Base returns the record itself: what embeds it is a Resource with its Keys alone.
func (r *Record) Base() *Record { return r }

// Resource is a resource of a service, with its Record embedded.
type Resource interface {
	Base() *Record
	// Keys are what the resource is found by, beside its id.
	Keys() []Key
}

// Key is an attribute and its value.
type Key [2]string

// ByName is the attribute under which resources are found by their names.
const ByName = "name"
