package ui

import (
	"context"
	"errors"
	"fmt"
)

// Target is the object that a person wants to change.
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID is that of the object which the person saw.
	UID string `json:"uid"`
	// Replicas is the size that it is to get.
	Replicas int32 `json:"replicas,omitempty"`
}

// Actor changes objects with the rights of the person. Each method returns what was done in words.
type Actor interface {
	Scale(ctx context.Context, t Target) (string, error)
	Pause(ctx context.Context, t Target) (string, error)
	Resume(ctx context.Context, t Target) (string, error)
	Restart(ctx context.Context, t Target) (string, error)
	Delete(ctx context.Context, t Target) (string, error)
}

var errNoSuchAction = errors.New("there is no such action")

// act carries out an action by its name. All but the deletion are for MachineDeployments.
func act(ctx context.Context, a Actor, action string, t Target) (string, error) {
	do, ok := map[string]func(context.Context, Target) (string, error){
		"scale": a.Scale, "pause": a.Pause, "resume": a.Resume, "restart": a.Restart, "delete": a.Delete,
	}[action]
	switch {
	case !ok:
		return "", errNoSuchAction
	case t.Namespace == "" || t.Name == "" || t.UID == "":
		return "", errors.New("namespace, name and uid of the object are needed")
	case action != "delete" && t.Kind != "MachineDeployment":
		return "", fmt.Errorf("%s is for a MachineDeployment, and %s is a %s", action, t.Name, t.Kind)
	}
	return do(ctx, t)
}
