package ui

import (
	"time"

	"github.com/millwright-dev/millwright/cmd/top"
	"github.com/millwright-dev/millwright/cmd/tree"
)

// row is an object as the page shows it.
type row struct {
	// ID is the object's, and Parent that of its owner; empty for none.
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	// Level is 0 for those without an owner.
	Level     int    `json:"level"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID tells the object from another that has its name later.
	UID     string    `json:"uid"`
	Ready   string    `json:"ready"`
	Phase   string    `json:"phase,omitempty"`
	Why     string    `json:"why,omitempty"`
	Node    string    `json:"node,omitempty"`
	Created time.Time `json:"created"`
	Paused  bool      `json:"paused,omitempty"`
	// Progress is a MachineDeployment's.
	Progress *top.Deployment `json:"progress,omitempty"`
}

// rowsOf puts all objects of a tree in a row, each below its owner.
func rowsOf(items []*tree.Item, frame top.Frame, isPaused func(namespace, name string) bool) []row {
	progress := map[string]*top.Deployment{}
	for i := range frame.Deployments {
		d := &frame.Deployments[i]
		progress[d.Namespace+"/"+d.Name] = d
	}
	var rows []row
	var add func(item *tree.Item, parent string, level int)
	add = func(item *tree.Item, parent string, level int) {
		r := row{
			ID: item.Kind + "/" + item.Namespace + "/" + item.Name, Parent: parent, Level: level, Kind: item.Kind, Namespace: item.Namespace,
			Name: item.Name, UID: string(item.UID), Ready: item.Ready, Phase: item.Phase, Why: item.Why, Created: item.Created.Time,
		}
		if item.Kind == "MachineDeployment" {
			r.Progress, r.Paused = progress[item.Namespace+"/"+item.Name], isPaused(item.Namespace, item.Name)
		}
		for _, owned := range item.Owned {
			if owned.Kind == "Node" {
				r.Node = owned.Name
			}
		}
		rows = append(rows, r)
		for _, owned := range item.Owned {
			if owned.Kind != "Node" {
				add(owned, r.ID, level+1)
			}
		}
	}
	for _, item := range items {
		add(item, "", 0)
	}
	return rows
}
