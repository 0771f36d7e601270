package template

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	texttemplate "text/template"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/version"
)

// markFunction is appended to each action that prints.
const markFunction = "millwright_mark"

// builtin are the functions of text/template that templates may use. The others print text of their
// own making, or call what is in a value.
var builtin = map[string]bool{
	"and": true, "or": true, "not": true, "eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true, "len": true, "index": true,
}

// functions are those that templates have besides.
var functions = texttemplate.FuncMap{
	"default": func(other, value any) any {
		if value == nil || reflect.ValueOf(value).IsZero() {
			return other
		}
		return value
	},
	"join": func(separator string, list []string) string { return strings.Join(list, separator) },
	"indent": func(spaces int, text string) (string, error) {
		const most = 64
		if spaces < 0 || spaces > most {
			return "", fmt.Errorf("indent: use 0 to %d spaces", most)
		}
		pad := strings.Repeat(" ", spaces)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
	},
	"b64enc":        func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
	"semverCompare": compareVersions,
	markFunction:    func(any) string { return "" },
}

// compareVersions compares a version as ">=1.35.0" says: by >=, >, <=, <, = or !=.
func compareVersions(constraint, text string) (bool, error) {
	v, err := version.ParseGeneric(text)
	if err != nil {
		return false, fmt.Errorf("semverCompare: %w", err)
	}
	constraint = strings.TrimSpace(constraint)
	number := strings.TrimLeft(constraint, "<>=!")
	to, err := version.ParseGeneric(strings.TrimSpace(number))
	if err != nil {
		return false, fmt.Errorf("semverCompare: %w", err)
	}
	switch strings.TrimSuffix(constraint, number) {
	case ">=":
		return v.AtLeast(to), nil
	case ">":
		return to.LessThan(v), nil
	case "<=":
		return to.AtLeast(v), nil
	case "<":
		return v.LessThan(to), nil
	case "=", "":
		return v.EqualTo(to), nil
	case "!=":
		return !v.EqualTo(to), nil
	}
	return false, fmt.Errorf("semverCompare: %q: use >=, >, <=, <, = or != and a version", constraint)
}

// parseActions parses a content, and has each action that prints mark its place.
func parseActions(content string) (*texttemplate.Template, error) {
	t, err := texttemplate.New("content").Option("missingkey=error").Funcs(functions).Parse(content)
	if err != nil {
		return nil, err
	}
	if len(t.Templates()) > 1 {
		return nil, errors.New("content: must not define templates")
	}
	if t.Tree == nil {
		return t, nil
	}
	return t, markList(t.Root)
}

func markList(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := markNode(node); err != nil {
			return err
		}
	}
	return nil
}

func markNode(node parse.Node) error {
	switch n := node.(type) {
	case *parse.TextNode, *parse.CommentNode, *parse.BreakNode, *parse.ContinueNode:
		return nil
	case *parse.ActionNode:
		if err := checkPipe(n.Pipe); err != nil || len(n.Pipe.Decl) > 0 {
			return err
		}
		identifier := parse.NewIdentifier(markFunction).SetPos(n.Pos)
		n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{identifier}})
		return nil
	case *parse.IfNode:
		return markBranch(&n.BranchNode)
	case *parse.WithNode:
		return markBranch(&n.BranchNode)
	case *parse.RangeNode:
		if _, counts := n.Pipe.Cmds[0].Args[0].(*parse.NumberNode); counts {
			return errors.New("content: range needs a list")
		}
		return markBranch(&n.BranchNode)
	}
	return fmt.Errorf("content: %s is not possible", node)
}

func markBranch(n *parse.BranchNode) error {
	return errors.Join(checkPipe(n.Pipe), markList(n.List), markList(n.ElseList))
}

// checkPipe refuses functions that are not for templates.
func checkPipe(pipe *parse.PipeNode) error {
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			switch a := arg.(type) {
			case *parse.IdentifierNode:
				if _, ours := functions[a.Ident]; a.Ident == markFunction || !ours && !builtin[a.Ident] {
					return fmt.Errorf("content: function %q is not possible", a.Ident)
				}
			case *parse.PipeNode:
				if err := checkPipe(a); err != nil {
					return err
				}
			case *parse.ChainNode:
				if inner, is := a.Node.(*parse.PipeNode); is {
					if err := checkPipe(inner); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}
