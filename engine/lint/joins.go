package lint

import (
	"fmt"
	"slices"
	"strings"
)

// joins reports joins that cannot fire, that wait for what cannot come together, or with
// inputs that could hold two tokens (WF017), and a bound that sends a token where the edge leads
// anyway.
func (c *check) joins() {
	c.t = netOf(c.g).explore()
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		if e.OnLimit != "" && slices.Contains(e.To, e.OnLimit) {
			c.edge(i, "WF017", edgePath(i, "on_limit"),
				fmt.Sprintf("on_limit leads to %s, where the edge leads anyway", e.OnLimit), "name another role, END, FAIL or SUSPEND")
		}
		if e.OnFailure && len(e.From) > 1 {
			c.edge(i, "WF017", edgePath(i, "from"),
				fmt.Sprintf("the join %s can never fire: a failure has one source", strings.Join(e.From, " + ")),
				"write one on: failure edge for each role")
		}
	}
	for k := range c.g.groups {
		c.join(k)
	}
	c.standstill()
}

// standstill reports a join that waits for what only joins behind it lead to. That shows as an
// input no token gets to though nothing else is wrong on the way.
func (c *check) standstill() {
	for _, f := range c.found {
		if f.Code == "WF011" || f.Code == "WF014" || f.Code == "WF017" {
			return
		}
	}
	for k := range c.g.groups {
		group := &c.g.groups[k]
		comes := func(i int) bool { return c.t.marked[c.t.net.inputs[k][i]] }
		here, missing := -1, -1
		for i := range group.from {
			if comes(i) {
				here = i
			} else if missing < 0 {
				missing = i
			}
		}
		if here < 0 || missing < 0 {
			continue
		}
		first := group.edges[0]
		c.edge(first, "WF017", edgePath(first, partAt("from", missing)),
			fmt.Sprintf("the join %s can never fire: %s comes only after it", strings.Join(group.from, " + "), group.from[missing]),
			fmt.Sprintf("add an edge that leads to %s before, or take it out of the join", group.from[missing]))
		return
	}
}

func (c *check) join(k int) {
	group := &c.g.groups[k]
	first := group.edges[0]
	if group.reported {
		return
	}
	title := strings.Join(group.from, " + ")
	for i, name := range group.from {
		if slices.Contains(group.from[:i], name) {
			c.edge(first, "WF017", edgePath(first, partAt("from", i)),
				fmt.Sprintf("the join %s names %s twice", title, name), "one token of each role is enough")
			return
		}
	}
	in := c.t.net.inputs[k]
	for _, p := range in {
		if !c.t.marked[p] {
			return // no run gets as far as here, which is reported where it stops
		}
	}
	for i, p := range in {
		for j, q := range in[:i] {
			if !c.t.pairs[p][q] {
				c.edge(first, "WF017", edgePath(first, partAt("from", i)),
					fmt.Sprintf("the join %s can never fire: only one of %s and %s can be on its way", title, group.from[j], group.from[i]),
					fmt.Sprintf("start both, with  to: [%s, %s]  or with  route: all , or write one edge for each of them", group.from[j], group.from[i]))
				return
			}
		}
	}
	for i, p := range in {
		if c.t.pairs[p][p] {
			c.edge(first, "WF017", edgePath(first, partAt("from", i)),
				fmt.Sprintf("the join %s could get two tokens from %s before it fires: %s", title, group.from[i], c.twice(c.g.index[group.from[i]])),
				c.inFront(c.g.index[group.from[i]]))
			return
		}
	}
}

// twice says how a role can hand on two tokens.
func (c *check) twice(node int) string {
	at, a, b := c.meeting(node)
	switch {
	case at < 0:
		return fmt.Sprintf("%s can run again while its token waits", c.g.nodes[node])
	case at == node:
		return fmt.Sprintf("%s and %s can both lead to it", c.g.nodes[a], c.g.nodes[b])
	}
	return fmt.Sprintf("%s and %s can both lead to %s before it", c.g.nodes[a], c.g.nodes[b], c.g.nodes[at])
}

// inFront proposes the join that would merge the two tokens.
func (c *check) inFront(node int) string {
	if at, a, b := c.meeting(node); at >= 0 {
		return fmt.Sprintf("put a join in front: {from: [%s, %s], to: %s}", c.g.nodes[a], c.g.nodes[b], c.g.nodes[at])
	}
	return "put a join in front of what starts it again, so that both branches go round together"
}

// meeting finds where two branches run together upstream of a node that two tokens can be in
// at once: the role, and the two that lead there. −1 if the node cannot hold two tokens or no
// such place is found.
func (c *check) meeting(node int) (at, a, b int) {
	two := func(n int) bool { return c.t.pairs[n][n] }
	if !two(node) {
		return -1, 0, 0
	}
	upstream, _ := flood(c.g.back, two, node)
	for _, n := range upstream {
		for i, p := range c.g.back[n] {
			for _, q := range c.g.back[n][:i] {
				if c.t.pairs[p][q] {
					return n, q, p
				}
			}
		}
	}
	return -1, 0, 0
}
