package layout

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"wf/protocol"
)

// build makes the nodes and arcs of a workflow, without places: START, roles in the order in
// which edges name them, joins where they first stand, then END and what else is used.
func build(w *protocol.Workflow) *Graph {
	b := &builder{w: w, g: &Graph{Name: plain(w.Name)}, at: map[string]int{}, joins: map[string]int{}}
	b.node(protocol.NodeStart)
	for i := range w.Edges {
		for _, name := range w.Edges[i].From {
			b.node(name)
		}
		b.joinOf(i)
		for _, name := range w.Edges[i].To {
			if _, ok := w.RoleNamed(name); ok {
				b.node(name)
			}
		}
	}
	for i := range w.Roles {
		if !slices.Contains(w.Always, w.Roles[i].Name) {
			b.node(w.Roles[i].Name)
		}
	}
	b.node(protocol.NodeEnd)
	for i := range w.Edges {
		b.arcs(i)
	}
	b.closing()
	return b.g
}

type builder struct {
	w     *protocol.Workflow
	g     *Graph
	at    map[string]int // node name → index
	joins map[string]int // from list → index of its bar
}

var reserved = map[string]Kind{protocol.NodeStart: Start, protocol.NodeEnd: End, protocol.NodeFail: Fail, protocol.NodeSuspend: Suspend}

// performs are the kinds of roles that no agent performs.
var performs = map[protocol.Action]Kind{protocol.ActRun: Command, protocol.ActAsk: Person, protocol.ActWait: Timer,
	protocol.ActWorkflow: SubWorkflow, protocol.ActSet: Values, protocol.ActMerge: Values}

// node finds or makes the node of a name; false if there is no such role.
func (b *builder) node(name string) (int, bool) {
	if n, ok := b.at[name]; ok {
		return n, true
	}
	n := Node{Name: name, Kind: reserved[name], H: smallHeight, W: smallWidth}
	switch n.Kind {
	case Suspend:
		n.W += 20
	case "":
		r, ok := b.w.RoleNamed(name)
		if !ok {
			return 0, false
		}
		n.Kind, n.Note, n.H = cmp.Or(performs[r.Action], Agent), noteOf(r), roleHeight
		n.W = max(roleWidth, iconRoom+max(nameCell*cells(title(name)), noteCell*cells(n.Note)/10)+16)
	}
	b.at[name] = len(b.g.Nodes)
	b.g.Nodes = append(b.g.Nodes, n)
	return b.at[name], true
}

// joinOf finds or makes the bar before edge i; −1 if the edge has a single source.
func (b *builder) joinOf(i int) int {
	from := b.w.Edges[i].From
	if len(from) < 2 {
		return -1
	}
	key := strings.Join(from, "\x00")
	if n, ok := b.joins[key]; ok {
		return n
	}
	bar := len(b.g.Nodes)
	b.joins[key] = bar
	b.g.Nodes = append(b.g.Nodes, Node{Kind: Join, W: max(barWidth, 36*len(from)), H: barHeight})
	for _, name := range from {
		if n, ok := b.node(name); ok {
			b.g.Arcs = append(b.g.Arcs, Arc{Edge: i, From: n, To: bar, Kind: Forward})
		}
	}
	return bar
}

func (b *builder) arcs(i int) {
	e := &b.w.Edges[i]
	from, ok := b.joinOf(i), true
	if len(e.From) == 1 {
		from, ok = b.node(e.From[0])
	}
	if !ok || from < 0 {
		return
	}
	kind := Forward
	if e.OnFailure {
		kind = Failure
	}
	label := labelOf(e)
	for k, name := range e.To {
		if to, ok := b.node(name); ok && !slices.Contains(e.To[:k], name) {
			b.g.Arcs = append(b.g.Arcs, Arc{Edge: i, From: from, To: to, Kind: kind, Label: label, bounded: e.Limit > 0 || b.capped(name)})
			label = "" // said once for all targets
		}
	}
	if e.OnLimit == "" {
		return
	}
	if to, ok := b.node(e.OnLimit); ok {
		label := "when full"
		if e.Limit > 0 {
			label = "after " + strconv.Itoa(e.Limit)
		}
		b.g.Arcs = append(b.g.Arcs, Arc{Edge: i, From: from, To: to, Kind: Limit, Label: label})
	}
}

// closing has the always roles follow END: they run however the run ends.
func (b *builder) closing() {
	from, label := b.at[protocol.NodeEnd], "always"
	for i, name := range b.w.Always {
		if to, ok := b.node(name); ok {
			b.g.Arcs = append(b.g.Arcs, Arc{Edge: -1 - i, From: from, To: to, Kind: Always, Label: label})
			from, label = to, ""
		}
	}
}

// capped reports whether max_visits bounds the role.
func (b *builder) capped(name string) bool {
	r, ok := b.w.RoleNamed(name)
	return ok && r.MaxVisits > 0
}

// Longest texts, in columns.
const (
	titleMax = 26
	noteMax  = 30
	labelMax = 34
)

func title(name string) string { return shorten(plain(name), titleMax) }

// noteOf says in a few words what a role does.
func noteOf(r *protocol.Role) string {
	note := ""
	switch r.Action {
	case protocol.ActPrompt:
		note = "agent"
		if len(r.Tools) > 0 {
			note += " · " + strings.Join(r.Tools, " ")
		}
	case protocol.ActRun:
		note = firstLine(r.Run)
	case protocol.ActAsk:
		note = strings.TrimLeft(marks.Replace(firstLine(r.Ask)), "#> ")
	case protocol.ActWorkflow:
		note = "sub-workflow"
	case protocol.ActWait:
		switch w := r.Wait; {
		case w == nil:
			note = "waits"
		case w.For != "":
			note = "waits " + w.For
		case w.Until != "":
			note = "until " + w.Until
		default:
			note = "signal " + w.Signal
		}
	case protocol.ActMerge:
		if r.Merge != nil {
			note = "merges " + r.Merge.Of
		}
	case protocol.ActSet:
		names := make([]string, 0, len(r.Set))
		for _, v := range r.Set {
			names = append(names, v.Name)
		}
		note = "sets " + strings.Join(names, ", ")
	}
	return shorten(plain(note), noteMax)
}

// marks are those of Markdown, in which questions are written.
var marks = strings.NewReplacer("**", "", "__", "", "`", "")

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// labelOf is the condition, fan-out and bound of an edge in a few words.
func labelOf(e *protocol.Edge) string {
	var parts []string
	if e.OnFailure {
		parts = append(parts, "on failure")
	}
	if e.ForEach != "" {
		parts = append(parts, "each "+shorten(plain(e.ForEach), labelMax-12))
	}
	if when := plain(e.When); when != "" {
		when = strings.ReplaceAll(when, "output.", "")
		parts = append(parts, shorten(when, labelMax-8))
	}
	if e.Limit > 0 {
		parts = append(parts, "max "+strconv.Itoa(e.Limit))
	}
	return shorten(strings.Join(parts, ", "), labelMax+8)
}
