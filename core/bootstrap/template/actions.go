package template

import (
	"errors"
	"fmt"
	"text/template/parse"
)

// parseActions parses a content. The parser refuses functions that are none of ours.
func parseActions(content string) (*parse.Tree, error) {
	defined := map[string]*parse.Tree{}
	tree, err := parse.New("content").Parse(content, "", "", defined, functions)
	if err != nil {
		return nil, err
	}
	if len(defined) > 1 || defined[tree.Name] != tree {
		return nil, errors.New("content: must not define templates")
	}
	return tree, checkList(tree.Root)
}

// checkList refuses what text/template has and templates have not.
func checkList(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := checkNode(node); err != nil {
			return err
		}
	}
	return nil
}

func checkNode(node parse.Node) error {
	switch n := node.(type) {
	case *parse.IfNode:
		return checkBranch(&n.BranchNode)
	case *parse.WithNode:
		return checkBranch(&n.BranchNode)
	case *parse.RangeNode:
		if _, counts := n.Pipe.Cmds[0].Args[0].(*parse.NumberNode); counts {
			return errors.New("content: range needs a list")
		}
		return checkBranch(&n.BranchNode)
	case *parse.TemplateNode:
		return fmt.Errorf("content: %s is not possible", node)
	}
	return nil
}

func checkBranch(n *parse.BranchNode) error {
	return errors.Join(checkList(n.List), checkList(n.ElseList))
}
