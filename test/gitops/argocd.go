// Package gitops judges Millwright's objects as GitOps tools do.
package gitops

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// Script reads the Lua with which Argo CD judges objects of a kind from its patch in deploy/argocd.
func Script(patch, kind string) (string, error) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return "", err
	}
	var parsed struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		return "", err
	}
	script := parsed.Data["resource.customizations.health.cluster.k8s.io_"+kind]
	if script == "" {
		return "", fmt.Errorf("%s has no health of %s", patch, kind)
	}
	return script, nil
}

// Judge runs a script as Argo CD does: the object is the global obj, the result a table, and there
// are no libraries but these three. Of what is being deleted no script is asked. Sources:
// https://argo-cd.readthedocs.io/en/stable/operator-manual/health/ and GetResourceHealth in
// https://github.com/argoproj/gitops-engine/blob/master/pkg/health/health.go
func Judge(script string, object any) (status, message string, err error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return "", "", err
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return "", "", err
	}
	if metadata, _ := plain["metadata"].(map[string]any); metadata["deletionTimestamp"] != nil {
		return "Progressing", "Pending deletion", nil
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", value(state, plain))
	if err := state.DoString(script); err != nil {
		return "", "", err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", errors.New("the script returns no table")
	}
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message")), nil
}

// value is JSON as Lua has it.
func value(state *lua.LState, from any) lua.LValue {
	switch from := from.(type) {
	case map[string]any:
		table := state.NewTable()
		for k, v := range from {
			table.RawSetString(k, value(state, v))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, v := range from {
			table.Append(value(state, v))
		}
		return table
	case string:
		return lua.LString(from)
	case float64:
		return lua.LNumber(from)
	case bool:
		return lua.LBool(from)
	}
	return lua.LNil
}
