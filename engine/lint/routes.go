package lint

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// describe is an edge as people draw it: "a + b → c".
func describe(e *protocol.Edge) string {
	return strings.Join(e.From, " + ") + " → " + strings.Join(e.To, ", ")
}

// duplicates reports edges that say what an earlier one says (WF016).
func (c *check) duplicates() {
	c.dead = make([]bool, len(c.w.Edges))
	first := map[string]int{}
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		key := strings.Join([]string{
			strings.Join(e.From, "\x00"), strings.Join(e.To, "\x00"),
			strings.TrimSpace(e.When), fmt.Sprint(e.OnFailure), strings.TrimSpace(e.ForEach),
		}, "\x01")
		if k, ok := first[key]; ok {
			c.dead[i] = true
			c.edge(i, "WF016", edgePath(i, ""), fmt.Sprintf("duplicate edge %s: edges[%d] is the same", describe(e), k), "remove one of them")
			continue
		}
		first[key] = i
	}
}

// neverTaken reports edges that no token can reach (WF014), and joins that one of their
// inputs can never reach (WF017).
func (c *check) neverTaken() {
	for n, name := range c.g.nodes {
		if !c.g.routeAll(n) {
			c.shadowed(name, c.g.offers[n])
			c.shadowed(name, c.g.onFail[n])
		}
	}
	for _, group := range c.g.groups {
		c.shadowedEdges(group.edges)
	}
}

func (c *check) shadowed(name string, offers []offer) {
	var edges []int
	for k, o := range offers {
		if o.group < 0 {
			edges = append(edges, o.edge)
			continue
		}
		for _, above := range offers[:k] {
			if c.g.unconditional(above) {
				c.starved(name, o, above)
				break
			}
		}
		for _, later := range offers[k+1:] {
			if later.group < 0 {
				e := &c.w.Edges[later.edge]
				c.never(later.edge, fmt.Sprintf("every token of %s waits in the join %s before it", name, strings.Join(c.g.groups[o.group].from, " + ")), c.both(e))
			}
		}
	}
	c.shadowedEdges(edges)
}

// shadowedEdges goes through edges that are tried in order and reports those that come too
// late.
func (c *check) shadowedEdges(edges []int) {
	for k, i := range edges {
		e := &c.w.Edges[i]
		for _, above := range edges[:k] {
			a := &c.w.Edges[above]
			when := strings.TrimSpace(a.When)
			switch {
			case always(a):
				c.never(i, fmt.Sprintf("edges[%d] (%s) takes every token before it", above, describe(a)), c.both(e))
			case when == strings.TrimSpace(e.When) && !strings.Contains(when, "edge"):
				c.never(i, fmt.Sprintf("edges[%d] (%s) has the same condition", above, describe(a)), "give them different conditions")
			default:
				continue
			}
			break
		}
	}
}

// both says how an edge can be taken beside the one above it.
func (c *check) both(e *protocol.Edge) string {
	if _, ok := c.w.RoleNamed(e.From[0]); ok && len(e.From) == 1 {
		return "move it up, give the earlier one a when, or set  route: all  on " + e.From[0]
	}
	return "move it up, give the earlier one a when, or write one edge  to: [a, b]  for both"
}

func (c *check) never(i int, why, hint string) {
	if c.dead[i] {
		return
	}
	c.dead[i] = true
	c.edge(i, "WF014", edgePath(i, ""), fmt.Sprintf("edge %s is never taken: %s", describe(&c.w.Edges[i]), why), hint)
}

// starved reports a join that no token of one input reaches.
func (c *check) starved(name string, o, above offer) {
	group := &c.g.groups[o.group]
	if group.reported {
		return
	}
	group.reported = true
	k := slices.Index(group.from, name)
	why := fmt.Sprintf("edges[%d] (%s)", above.edge, describe(&c.w.Edges[above.edge]))
	hint := "give that edge a when, or set  route: all  on " + name
	if above.group >= 0 {
		why = "the join " + strings.Join(c.g.groups[above.group].from, " + ")
		if other := c.g.groups[above.group].from; slices.Equal(slices.Sorted(slices.Values(group.from)), slices.Sorted(slices.Values(other))) {
			hint = "write both with the same order in from: then they are one join"
		}
	}
	c.edge(o.edge, "WF017", edgePath(o.edge, partAt("from", k)),
		fmt.Sprintf("the join %s can never fire: %s takes every token of %s before it", strings.Join(group.from, " + "), why, name), hint)
}
