package state

import (
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Store is what the services of one cloud share. The lock of its Front guards all of it but the
// Front.
type Store struct {
	// Front is what every call goes through. It is set before the first call, and not used before.
	Front   *testcloud.Front
	Journal *Journal
	Owners  *Owners
	Quotas  *Quotas

	seq   int64
	given int64 // how many things the world had
}

// NewStore returns a store in which nothing was made yet. It keeps to memory until its Journal is
// begun.
func NewStore() *Store {
	j := &Journal{}
	return &Store{
		Journal: j, Owners: &Owners{byID: map[string]Owner{}, byName: map[string]Owner{}},
		Quotas: &Quotas{journal: j, ofAll: map[string]int64{}, ofProject: map[string]map[string]int64{}},
	}
}

// beforeAll is below the number of everything that was ever made.
const beforeAll = -1 << 40

// NewRecord numbers a resource that somebody makes.
func (s *Store) NewRecord(project, name string) Record {
	s.seq++
	at := testcloud.Now()
	return Record{Seq: s.seq, ID: NewID(), Project: project, Name: name, Created: at, Updated: at}
}

// GivenRecord is that of a resource of the world; an empty id follows from the rest. Its number
// does not depend on what was made: the world may be another one the next time.
func (s *Store) GivenRecord(kind, id, name, project string) Record {
	s.given++
	at := testcloud.Now()
	r := Record{Seq: beforeAll + s.given, ID: id, Project: project, Name: name, Created: at, Updated: at, Given: true}
	if id == "" {
		r.ID = NamedID(kind, project+"/"+name)
	}
	return r
}

// Newest is the number of the newest resource.
func (s *Store) Newest() int64 { return s.seq }

// Reached notes that a resource with this number was made, in this run of the cloud or an earlier
// one.
func (s *Store) Reached(seq int64) { s.seq = max(s.seq, seq) }
