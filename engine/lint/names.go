package lint

import (
	"fmt"
	"slices"
	"strconv"

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

func (c *check) name(edge int, part, name string, reserved []string) {
	if _, ok := c.w.RoleNamed(name); ok || name == Unknown || slices.Contains(reserved, name) {
		return
	}
	switch name {
	case protocol.NodeStart:
		c.edge(edge, "WF010", edgePath(edge, part), "nothing leads back to START", "name the role to go on with")
		return
	case protocol.NodeEnd, protocol.NodeFail:
		c.edge(edge, "WF010", edgePath(edge, part), fmt.Sprintf("no edge leaves %s: the run is over there", name), "name a role")
		return
	case protocol.NodeSuspend:
		c.edge(edge, "WF010", edgePath(edge, part), "SUSPEND can only stand in on_limit", "name a role; an ask role waits for a person")
		return
	}
	hint := "declare it under roles"
	if near := nearest(name, c.known(reserved)); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	c.edge(edge, "WF010", edgePath(edge, part), fmt.Sprintf("unknown role %q", name), hint)
}

// nearest is the known name fewest edits away, "" if none is near enough to be meant.
func nearest(name string, known []string) string {
	best, least := "", max(1, len([]rune(name))/3)+1
	for _, k := range known {
		if d := Edits(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// Edits counts the insertions, deletions, replacements and swaps of neighbours between a and
// b; letters that differ in case alone count as equal.
func Edits(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before []int
	prev := make([]int, len(t)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row := make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			differ := 1
			if lower(s[i-1]) == lower(t[j-1]) {
				differ = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+differ)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(t)]
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
