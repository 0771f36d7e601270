package compute

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Servers are those that there are, and those that are gone.
type Servers struct {
	store *state.Store

	// All are by Seq, also those that are gone; Alive are those that there are.
	All   map[int64]*Server
	Alive *state.Inventory[*Server]
	// Gone are by id.
	Gone map[string]*Server
	// History has their changes, by Seq.
	History testcloud.History
	// Peak is the most that there were at once of a cluster; of all under "".
	Peak map[string]int64

	buried     []*Server // in the order of their deletion
	aliveCount map[string]int64
}

// kindServer is how the journal calls servers.
const kindServer = "server"

func newServers(store *state.Store) *Servers {
	return &Servers{
		store: store, All: map[int64]*Server{}, Alive: state.NewInventory[Server](kindServer, store), Gone: map[string]*Server{},
		Peak: map[string]int64{}, aliveCount: map[string]int64{},
	}
}

// put takes in a server that is new, here or in the journal.
func (servers *Servers) put(s *Server) {
	servers.All[s.Seq] = s
	servers.store.Reached(s.Seq)
	servers.store.Owners.Set(s.ID, s.Owner)
	servers.store.Owners.SetName(s.Name, s.Owner)
	if s.Gone() {
		servers.remember(s)
		return
	}
	servers.Alive.Put(s)
	servers.count(s, 1)
}

// count keeps the counts of servers, and their peaks.
func (servers *Servers) count(s *Server, by int64) {
	clusters := []string{""}
	if s.Owner.Cluster != "" {
		clusters = append(clusters, s.Owner.Cluster)
	}
	for _, cluster := range clusters {
		servers.aliveCount[cluster] += by
		servers.Peak[cluster] = max(servers.Peak[cluster], servers.aliveCount[cluster])
	}
}

// touch gives the server a new revision, and has it written down, also when it is gone.
func (servers *Servers) touch(s *Server) {
	s.Revision = servers.History.Note(s.Seq)
	servers.History.Tidy(len(servers.All), servers.isCurrent)
	servers.store.Front.Wake()
	servers.store.Journal.Note(kindServer, s, false)
}

func (servers *Servers) isCurrent(ch testcloud.Change) bool {
	return servers.All[ch.Key].Revision == ch.Revision
}

// saveUserData has the user data of a new server written down: touch does not.
func (servers *Servers) saveUserData(s *Server) {
	servers.store.Journal.Save(func(e *state.Entry) {
		if e.UserData == nil {
			e.UserData = map[string]string{}
		}
		e.UserData[s.ID] = s.UserData
	})
}

// reindex notes that what a server is found by has changed.
func (servers *Servers) reindex(s *Server) {
	if !s.Gone() {
		servers.Alive.Put(s)
	}
}

// remember remembers a server that is gone.
func (servers *Servers) remember(s *Server) {
	servers.buried = append(servers.buried, s)
	servers.Gone[s.ID] = s
}

// remove takes a server away. It is not remembered yet, and touch has it written down.
func (servers *Servers) remove(s *Server) {
	servers.Alive.Remove(s.ID)
	servers.count(s, -1)
}

// find finds a server by its id, also one that is gone; nil where there was none.
func (servers *Servers) find(id string) *Server {
	if s := servers.Alive.ByID[id]; s != nil {
		return s
	}
	return servers.Gone[id]
}

// in returns the members of a server group.
func (servers *Servers) in(group string) []string {
	members := []string{}
	for _, s := range servers.Alive.Ordered {
		if s.Group == group {
			members = append(members, s.ID)
		}
	}
	slices.Sort(members)
	return members
}

// Entries are all servers as the journal has them, in the order of their last changes.
func (servers *Servers) Entries() []state.Entry {
	var entries []state.Entry
	for _, ch := range servers.History.After(0) {
		s := servers.All[ch.Key]
		if s.Revision != ch.Revision {
			continue
		}
		e := state.Entry{Items: []state.Item{{Kind: kindServer, ID: s.ID, Now: s}}}
		if s.UserData != "" {
			e.UserData = map[string]string{s.ID: s.UserData}
		}
		entries = append(entries, e)
	}
	return entries
}

// Restore takes in the servers of an entry of the journal. User data is written once, and goes with
// the server.
func (servers *Servers) Restore(e *state.Entry) error {
	for _, i := range e.Items {
		if i.Kind != kindServer {
			continue
		}
		s := &Server{UserData: e.UserData[i.ID]}
		if err := json.Unmarshal(i.Raw, s); err != nil {
			return fmt.Errorf("%s %s: %w", i.Kind, i.ID, err)
		}
		servers.restore(s)
	}
	return nil
}

// restore takes in a server in the place of what it was before.
func (servers *Servers) restore(s *Server) {
	if old := servers.All[s.Seq]; old != nil {
		if s.UserData == "" {
			s.UserData = old.UserData
		}
		if old.Gone() {
			servers.buried = slices.DeleteFunc(servers.buried, func(other *Server) bool { return other == old })
		} else {
			servers.remove(old)
		}
	}
	if s.Gone() {
		s.UserData = ""
	}
	servers.put(s)
}

// Restored is told that the journal has been read: it puts the servers back into the order of their
// last changes.
func (servers *Servers) Restored() {
	ordered := slices.SortedFunc(maps.Values(servers.All), func(a, b *Server) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, s := range ordered {
		servers.History.Restore(s.Revision, s.Seq)
	}
	slices.SortFunc(servers.buried, func(a, b *Server) int { return a.Updated.Compare(b.Updated) })
}

// RestorePeak takes in what Peak was before.
func (servers *Servers) RestorePeak(peak map[string]int64) {
	for cluster, n := range peak {
		servers.Peak[cluster] = max(servers.Peak[cluster], n)
	}
}
