package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wf/protocol"
)

// edgePath is the path of a part of edge i, or of the edge itself.
func edgePath(i int, part string) string {
	p := "edges[" + strconv.Itoa(i) + "]"
	if part != "" {
		p += "." + part
	}
	return p
}

func partAt(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

// The ends of an edge beside roles.
var (
	fromEnds  = []string{protocol.NodeStart}
	toEnds    = []string{protocol.NodeEnd, protocol.NodeFail}
	limitEnds = []string{protocol.NodeEnd, protocol.NodeFail, protocol.NodeSuspend}
)

// known are the names that an end of an edge can have.
func (c *check) known(reserved []string) []string {
	known := slices.Clone(reserved)
	for i := range c.w.Roles {
		known = append(known, c.w.Roles[i].Name)
	}
	return known
}

// names reports every end of an edge that is no node (WF010).
func (c *check) names() {
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		for k, name := range e.From {
			c.name(i, partAt("from", k), name, fromEnds)
		}
		for k, name := range e.To {
			c.name(i, partAt("to", k), name, toEnds)
		}
		if e.OnLimit != "" {
			c.name(i, "on_limit", e.OnLimit, limitEnds)
		}
	}
}

// misplaced is what is wrong with the reserved names where they cannot stand, and what to do.
var misplaced = map[string][2]string{
	protocol.NodeStart:   {"nothing leads back to START", "name the role to go on with"},
	protocol.NodeEnd:     {"no edge leaves END: the run is over there", "name a role"},
	protocol.NodeFail:    {"no edge leaves FAIL: the run is over there", "name a role"},
	protocol.NodeSuspend: {"SUSPEND can only stand in on_limit", "name a role; an ask role waits for a person"},
}

// Reserved reports whether a name is that of an end of the graph.
func Reserved(name string) bool {
	_, ok := misplaced[name]
	return ok
}

func (c *check) name(edge int, part, name string, reserved []string) {
	if _, ok := c.w.RoleNamed(name); ok || name == Unknown || slices.Contains(reserved, name) {
		return
	}
	if why, ok := misplaced[name]; ok {
		c.edge(edge, "WF010", edgePath(edge, part), why[0], why[1])
		return
	}
	hint, near := "declare it under roles", nearest(name, c.known(reserved))
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	c.edge(edge, "WF010", edgePath(edge, part), fmt.Sprintf("unknown role %q", name), hint)
	c.found[len(c.found)-1].Near = near
}

// Nearest is the name that was probably meant, "" where none differs in few enough letters; case
// does not count. Of several the first is given. most bounds the letters, however long the name is.
func Nearest(name string, known []string, most int) string {
	best, bound := "", max(1, min(most, len([]rune(name))/3))+1
	low := strings.ToLower(name)
	for _, k := range known {
		if d := protocol.Edits(low, strings.ToLower(k)); d < bound {
			best, bound = k, d
		}
	}
	return best
}

// nearest is Nearest for the name of a role: the longer it is, the more of it may be wrong.
func nearest(name string, known []string) string { return Nearest(name, known, len(name)) }
