package lint

import (
	"slices"
	"strings"

	"wf/protocol"
)

// graph is the workflow as tokens see it.
type graph struct {
	w      *protocol.Workflow
	nodes  []string       // START, then the roles as declared in the definition
	index  map[string]int // of nodes; END, FAIL and SUSPEND are not in it
	offers [][]offer      // by node: what a visit that went well can do, in declared order
	onFail [][]offer      // by node: what a visit that failed for good can do
	groups []group        // joins, in order of their first edge
	arcs   []arc
	forth  [][]int // by node: those that an arc leads to
	back   [][]int // by node: those that an arc comes from

	strangers map[string]string // roles of which nothing is known
}

// offer is one edge of a single source, or one join group.
type offer struct {
	edge  int // index of the edge, of the first one for a group
	group int // index in graph.groups, −1 for a single edge
}

// group is a join: the edges with one from list of several roles.
type group struct {
	from     []string
	edges    []int
	reported bool // that it can never fire
}

// arc is a way from node to node. Bounded ones cannot be taken for ever.
type arc struct {
	from, to int
	edge     int
	bounded  bool
}

func graphOf(w *protocol.Workflow) *graph {
	g := &graph{w: w, nodes: []string{protocol.NodeStart}, index: map[string]int{protocol.NodeStart: 0}}
	for i := range w.Roles {
		g.index[w.Roles[i].Name] = len(g.nodes)
		g.nodes = append(g.nodes, w.Roles[i].Name)
	}
	g.offers = make([][]offer, len(g.nodes))
	g.onFail = make([][]offer, len(g.nodes))
	joins := map[string]int{}
	for i := range w.Edges {
		e := &w.Edges[i]
		if len(e.From) == 1 {
			if from, ok := g.index[e.From[0]]; ok {
				list := &g.offers[from]
				if e.OnFailure {
					list = &g.onFail[from]
				}
				*list = append(*list, offer{edge: i, group: -1})
			}
		} else if len(e.From) > 1 && !e.OnFailure {
			g.join(joins, i)
		}
		g.ways(i)
	}
	g.forth, g.back = g.neighbours(false), g.neighbours(true)
	return g
}

// join files edge i under its group, which each of its inputs offers once.
func (g *graph) join(joins map[string]int, i int) {
	e := &g.w.Edges[i]
	key := strings.Join(e.From, "\x00")
	if at, ok := joins[key]; ok {
		g.groups[at].edges = append(g.groups[at].edges, i)
		return
	}
	at := len(g.groups)
	joins[key] = at
	g.groups = append(g.groups, group{from: e.From, edges: []int{i}})
	for k, name := range e.From {
		if from, ok := g.index[name]; ok && !slices.Contains(e.From[:k], name) {
			g.offers[from] = append(g.offers[from], offer{edge: i, group: at})
		}
	}
}

// ways adds the arcs of edge i. A diverted token takes the way to on_limit, which the limit
// of the edge does not bound; max_visits of where it leads does.
func (g *graph) ways(i int) {
	e := &g.w.Edges[i]
	for _, name := range e.From {
		from, ok := g.index[name]
		if !ok {
			continue
		}
		for _, target := range e.To {
			if to, ok := g.index[target]; ok {
				g.arcs = append(g.arcs, arc{from, to, i, e.Limit > 0 || g.capped(to)})
			}
		}
		if to, ok := g.index[e.OnLimit]; ok && g.diverts(e) {
			g.arcs = append(g.arcs, arc{from, to, i, g.capped(to)})
		}
	}
}

// capped reports whether max_visits bounds the node.
func (g *graph) capped(node int) bool { return node > 0 && g.w.Roles[node-1].MaxVisits > 0 }

// diverts reports whether a bound can send a token of the edge to its on_limit.
func (g *graph) diverts(e *protocol.Edge) bool {
	if e.Limit > 0 {
		return true
	}
	return slices.ContainsFunc(e.To, func(name string) bool {
		to, ok := g.index[name]
		return ok && g.capped(to)
	})
}

// routeAll reports whether every offer that holds gets a token.
func (g *graph) routeAll(node int) bool { return node > 0 && g.w.Roles[node-1].RouteAll }

// unconditional reports whether a token that reaches the offer goes no further.
func (g *graph) unconditional(o offer) bool { return o.group >= 0 || always(&g.w.Edges[o.edge]) }

// always reports whether the edge takes every token.
func always(e *protocol.Edge) bool {
	when := strings.TrimSpace(e.When)
	return when == "" || when == "true"
}

// open are the offers that a token can reach: up to the first unconditional one, or all of
// them under route: all.
func (g *graph) open(node int, offers []offer) []offer {
	if g.routeAll(node) {
		return offers
	}
	for i, o := range offers {
		if g.unconditional(o) {
			return offers[:i+1]
		}
	}
	return offers
}

// takeable are the edges of a join that can be taken once all its inputs are there.
func (g *graph) takeable(group int) []int {
	edges := g.groups[group].edges
	for i, e := range edges {
		if always(&g.w.Edges[e]) {
			return edges[:i+1]
		}
	}
	return edges
}
