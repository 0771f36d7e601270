package template

import (
	"errors"
	"fmt"
	"text/template/parse"
)

// evaluator fills in one content as text/template's Execute does, with missingkey=error. Execute
// also calls methods by their names, for which the linker keeps all methods of a program.
type evaluator struct {
	tree *parse.Tree
	// variables are those in scope. Of two with one name the last counts.
	variables []variable
	output    output
	left      *budget
}

// budget is what is left to all contents of a document together: one of them may use it up.
type budget struct {
	// work: nodes and words evaluated, items of lists and maps, and bytes that functions take and
	// return.
	work int
	// bytes printed.
	bytes int
}

func newBudget() *budget { return &budget{work: maxWork, bytes: maxDocument} }

// print ends a document that becomes too long.
func (b *budget) print(bytes int) error {
	if b.bytes -= bytes; b.bytes < 0 {
		return errDocument
	}
	return nil
}

// maxWork bounds how long a document takes, whatever it prints.
const maxWork = 4 * maxContent

var errTooMuch = errors.New("repeats too much, or makes too long texts")

type variable struct {
	name  string
	value any
}

// errBreak and errContinue are passed up to the range that they are for.
var errBreak, errContinue = errors.New("break"), errors.New("continue")

// evaluate returns what the content prints. An error names the place and tells no value.
func evaluate(tree *parse.Tree, values map[string]any, left *budget) (*output, error) {
	e := &evaluator{tree: tree, variables: []variable{{"$", values}}, left: left}
	return &e.output, e.list(values, tree.Root)
}

// fail is an error that names the place in the content, as text/template does.
func (e *evaluator) fail(at parse.Node, format string, arguments ...any) error {
	location, action := e.tree.ErrorContext(at)
	return fmt.Errorf("template: %s: executing %q at <%s>: %w", location, e.tree.Name, action, fmt.Errorf(format, arguments...))
}

// spend ends what does too much.
func (e *evaluator) spend(work int) error {
	if e.left.work -= work; e.left.work < 0 {
		return errTooMuch
	}
	return nil
}

// list evaluates nodes with dot as the value of ".".
func (e *evaluator) list(dot any, list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	if err := e.spend(1 + len(list.Nodes)); err != nil {
		return err
	}
	for _, node := range list.Nodes {
		if err := e.node(dot, node); err != nil {
			return err
		}
	}
	return nil
}

// node evaluates what checkList has let pass.
func (e *evaluator) node(dot any, node parse.Node) error {
	switch n := node.(type) {
	case *parse.TextNode:
		return e.output.addText(n.Text)
	case *parse.ActionNode:
		value, err := e.pipeline(dot, n.Pipe)
		if err != nil || len(n.Pipe.Decl) > 0 {
			return err
		}
		return e.output.addValue(value)
	case *parse.IfNode:
		return e.branch(dot, &n.BranchNode)
	case *parse.WithNode:
		return e.branch(dot, &n.BranchNode)
	case *parse.RangeNode:
		if err := e.loop(dot, n); !errors.Is(err, errBreak) {
			return err
		}
		return nil
	case *parse.BreakNode:
		return errBreak
	}
	return errContinue
}

// branch evaluates an if or a with.
func (e *evaluator) branch(dot any, n *parse.BranchNode) error {
	defer e.forget(len(e.variables))
	value, err := e.pipeline(dot, n.Pipe)
	switch {
	case err != nil:
		return err
	case !isTrue(value):
		return e.list(dot, n.ElseList)
	case n.NodeType == parse.NodeWith:
		return e.list(value, n.List)
	}
	return e.list(dot, n.List)
}

func (e *evaluator) loop(dot any, n *parse.RangeNode) error {
	defer e.forget(len(e.variables))
	value, err := e.pipeline(dot, n.Pipe)
	if err != nil {
		return err
	}
	// The keys of a map are sorted, also for a range that breaks at the first.
	if err := e.spend(lengthOf(value)); err != nil {
		return err
	}
	items, err := itemsOf(value, len(n.Pipe.Decl))
	if err != nil {
		return e.fail(n.Pipe, "%w", err)
	}
	outer, isEmpty := len(e.variables), true
	for key, item := range items {
		isEmpty = false
		switch names := n.Pipe.Decl; len(names) {
		case 1:
			*e.variable(names[0]) = item
		case 2:
			*e.variable(names[0]) = key
			*e.variable(names[1]) = item
		}
		err := e.list(item, n.List)
		e.forget(outer)
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	if isEmpty {
		return e.list(dot, n.ElseList)
	}
	return nil
}

// forget ends the scope of all variables but the first n.
func (e *evaluator) forget(n int) { e.variables = e.variables[:n] }

// variable is where the value of a variable in scope is. It is nil if there is none: the parser
// does not see that "or" has passed over a declaration.
func (e *evaluator) variable(n *parse.VariableNode) *any {
	for i := len(e.variables) - 1; i >= 0; i-- {
		if e.variables[i].name == n.Ident[0] {
			return &e.variables[i].value
		}
	}
	return nil
}

// pipeline returns the value of its last command, and sets the variables that it names.
func (e *evaluator) pipeline(dot any, pipe *parse.PipeNode) (value any, err error) {
	var final []any // what a command leaves to the next one, as its last argument
	for _, command := range pipe.Cmds {
		if value, err = e.command(dot, command, final); err != nil {
			return nil, err
		}
		final = []any{value}
	}
	for _, n := range pipe.Decl {
		if !pipe.IsAssign {
			e.variables = append(e.variables, variable{n.Ident[0], value})
			continue
		}
		known := e.variable(n)
		if known == nil {
			return nil, e.fail(pipe, "undefined variable: %s", n)
		}
		*known = value
	}
	return value, nil
}

func (e *evaluator) command(dot any, command *parse.CommandNode, final []any) (any, error) {
	if err := e.spend(len(command.Args)); err != nil {
		return nil, err
	}
	first := command.Args[0]
	if name, is := first.(*parse.IdentifierNode); is {
		return e.call(dot, command, name.Ident, final)
	}
	if len(command.Args) > 1 || len(final) > 0 {
		return nil, e.fail(first, "can't give argument to non-function %s", first)
	}
	if first.Type() == parse.NodeNil {
		return nil, e.fail(first, "nil is not a command")
	}
	return e.operand(dot, first)
}

func (e *evaluator) call(dot any, command *parse.CommandNode, name string, final []any) (any, error) {
	until, isLazy := lazy[name]
	var arguments []any
	for _, node := range command.Args[1:] {
		value, err := e.operand(dot, node)
		if err != nil || isLazy && isTrue(value) == until {
			return value, err
		}
		if n, is := node.(*parse.NumberNode); is && n.IsInt && name == "indent" {
			value = int(n.Int64) // so is 2.0
		}
		arguments = append(arguments, value)
	}
	arguments = append(arguments, final...)
	if err := e.spend(lengthOf(arguments...)); err != nil {
		return nil, err
	}
	value, err := apply(functions[name], arguments)
	if err != nil {
		return nil, e.fail(command, "error calling %s: %w", name, err)
	}
	return value, e.spend(lengthOf(value))
}

// operand returns the value of one word.
func (e *evaluator) operand(dot any, node parse.Node) (any, error) {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return nil, nil
	case *parse.BoolNode:
		return n.True, nil
	case *parse.StringNode:
		return n.Text, nil
	case *parse.NumberNode:
		if value := number(n); value != nil {
			return value, nil
		}
		return nil, e.fail(n, "%s overflows int", n)
	case *parse.PipeNode:
		return e.pipeline(dot, n)
	case *parse.FieldNode:
		return e.fields(n, dot, n.Ident)
	case *parse.VariableNode:
		value := e.variable(n)
		if value == nil {
			return nil, e.fail(n, "undefined variable: %s", n.Ident[0])
		}
		return e.fields(n, *value, n.Ident[1:])
	case *parse.ChainNode:
		value, err := e.operand(dot, n.Node)
		if err != nil {
			return nil, err
		}
		return e.fields(n, value, n.Field)
	}
	return nil, e.fail(node, "wrong number of args for %s: got 0", node)
}

// fields follows keys into maps.
func (e *evaluator) fields(at parse.Node, value any, keys []string) (any, error) {
	for _, key := range keys {
		item, isMap, has := lookup(value, key)
		if !isMap {
			return nil, e.fail(at, "can't evaluate field %s in type %T", key, value)
		}
		if !has {
			return nil, e.fail(at, "map has no entry for key %q", key)
		}
		value = item
	}
	return value, nil
}
