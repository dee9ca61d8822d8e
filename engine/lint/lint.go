// Package lint finds what is wrong with the graph of a workflow before anything runs.
//
// It reads the canonical definition alone: no YAML, no positions. A Finding names its place
// by a path such as edges[3].to[0]; the parser of the file knows the line of it.
//
//	Workflow ─► names ─► offers ─► arcs  ─► reach, cycles, references
//	                        └────► nets ─► joins, overlaps
//
// # Words
//
// An offer is what one finished visit can do with its token: one edge, or one join group
// (the edges with the same from list). An arc is a way from role to role that some edge,
// bound or failure can take. A place is somewhere a token can be: in a role, or waiting in
// an input of a join.
//
// # Sound, not complete
//
// Conditions are taken as free choices. A join that could ever hold two tokens in one input
// is refused; some that never would are refused with it. Everything said about conditions
// (WF015, WF507) is said only when it is certain.
//
// # Not here
//
// Syntax, types of expressions, schemas: the parser reports those.
package lint

import (
	"cmp"
	"slices"

	"wf/protocol"
)

// Finding is one fault of a definition, or a warning.
type Finding struct {
	Code    string // WF010 …; from WF500 on it is a warning
	Path    string // "edges[3].to[0]", "roles.coder.max_visits", "edges[2]"
	Message string // what is wrong, one line, without the code
	Hint    string // what to do; "" where the message says it
	Near    string // of an unknown name: the one that was probably meant, or ""

	at int // index of the edge that it sorts by
}

// Enums tells the values that the top-level output fields of a role can have: field → its
// enum as JSON values, in declared order. A field that is not in the map can be anything.
type Enums = func(role string) map[string][]any

// Check reports everything wrong with the graph of w, in edge order, then by code. A nil
// enums knows of no enum; choices of an ask role and exit codes are known without it.
//
// Where names are unknown the rest is looked at all the same, and a finding is reported if it
// is so whatever they were meant to be. Others are further definitions that the file may have
// meant, with the same edges: a finding that one of them does not have is not reported.
func Check(w *protocol.Workflow, enums Enums, others ...*protocol.Workflow) []Finding {
	c := &check{w: w, enums: enums}
	c.names()
	found := c.graph()
	for _, other := range others {
		found = common(found, (&check{w: other, enums: enums}).graph())
	}
	c.found = append(c.found, found...)
	protocol.Sort(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Path, b.Path))
	})
	return c.found
}

// graph finds what is wrong beside the names.
func (c *check) graph() []Finding {
	r := c.strange()
	found := c.in(r)
	if len(r.strangers) == 0 {
		return found
	}
	sure := func(f Finding) bool { return f.Code == "WF013" } // no way of it leads through a stranger
	cycles := slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return !sure(f) })
	rest := slices.DeleteFunc(found, sure)
	return append(cycles, common(rest, c.in(c.meant()))...)
}

// check is one pass over one workflow.
type check struct {
	w     *protocol.Workflow
	enums Enums
	g     *graph
	dead  []bool // by edge: never taken, and reported
	t     *together
	paths map[int][]bool // by node: where it leads
	found []Finding
}

// edge reports a fault of edge i.
func (c *check) edge(i int, code, path, message, hint string) {
	c.found = append(c.found, Finding{Code: code, Path: path, Message: message, Hint: hint, at: i})
}

// role reports a fault of a role; it sorts with the first edge that touches the role.
func (c *check) role(name, code, path, message, hint string) {
	c.edge(c.firstEdge(name), code, path, message, hint)
}

// firstEdge is the index of the first edge that touches the role, that beyond the last if
// none does.
func (c *check) firstEdge(name string) int {
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		if slices.Contains(e.From, name) || slices.Contains(e.To, name) || e.OnLimit == name {
			return i
		}
	}
	return len(c.w.Edges)
}
