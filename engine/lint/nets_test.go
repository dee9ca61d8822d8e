package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/protocol"
)

// The markings of a small workflow, explored one by one straight from the rules of the
// engine, without the net that lint builds.

// world is a marking: tokens in roles, and tokens that wait in joins.
type world struct {
	at      map[string]int
	waiting map[string]int // "a+b/a" → tokens of a in the join a+b
}

func (m world) clone() world {
	c := world{map[string]int{}, map[string]int{}}
	for k, v := range m.at {
		c.at[k] = v
	}
	for k, v := range m.waiting {
		c.waiting[k] = v
	}
	return c
}

func (m world) key() string { return fmt.Sprint(m.at, m.waiting) }

// explorer walks all markings that conditions, taken as free choices, allow.
type explorer struct {
	w      *protocol.Workflow
	seen   map[string]bool
	double map[string]bool // join inputs that held two tokens
	fired  map[string]bool // joins that were complete
	both   map[string]bool // roles that held two tokens
}

const tokensMax, markingsMax = 6, 4000

func explore(w *protocol.Workflow) *explorer {
	x := &explorer{w: w, seen: map[string]bool{}, double: map[string]bool{}, fired: map[string]bool{}, both: map[string]bool{}}
	todo := []world{{map[string]int{"START": 1}, map[string]int{}}}
	for len(todo) > 0 && len(x.seen) < markingsMax {
		m := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if x.seen[m.key()] {
			continue
		}
		x.seen[m.key()] = true
		tokens := 0
		for role, n := range m.at {
			tokens += n
			x.both[role] = x.both[role] || n > 1
		}
		for input, n := range m.waiting {
			tokens += n
			x.double[input] = x.double[input] || n > 1
		}
		if tokens > tokensMax {
			continue
		}
		for role, n := range m.at {
			if n == 0 {
				continue
			}
			left := m.clone()
			if left.at[role]--; left.at[role] == 0 {
				delete(left.at, role)
			}
			todo = append(todo, x.offers(left, role, false)...)
			todo = append(todo, x.offers(left, role, true)...)
		}
		todo = append(todo, x.joins(m)...)
	}
	return x
}

// offers routes the token of a role that finished, or failed.
func (x *explorer) offers(m world, role string, failed bool) []world {
	r, ok := x.w.RoleNamed(role)
	all := ok && r.RouteAll
	worlds := []world{m} // those in which no edge has held so far
	var done []world
	offered := map[string]bool{}
	for i := range x.w.Edges {
		e := &x.w.Edges[i]
		if e.OnFailure != failed || !slices.Contains(e.From, role) {
			continue
		}
		var taken []world
		sure := e.When == ""
		if len(e.From) > 1 {
			join := strings.Join(e.From, "+")
			if offered[join] {
				continue
			}
			offered[join], sure = true, true
			for _, m := range worlds {
				m = m.clone()
				m.waiting[join+"/"+role]++
				taken = append(taken, m)
			}
		} else {
			for _, m := range worlds {
				taken = append(taken, x.take(m, e)...)
			}
		}
		switch {
		case all && sure:
			worlds = taken
		case all:
			worlds = append(worlds, taken...)
		default:
			done = append(done, taken...)
			if sure {
				return done
			}
		}
	}
	return append(done, worlds...)
}

func (x *explorer) joins(m world) []world {
	var out []world
	tried := map[string]bool{}
	for i := range x.w.Edges {
		e := &x.w.Edges[i]
		join := strings.Join(e.From, "+")
		if len(e.From) < 2 || tried[join] {
			continue
		}
		left := m.clone()
		complete := true
		for _, role := range e.From {
			input := join + "/" + role
			complete = complete && left.waiting[input] > 0
			if left.waiting[input]--; left.waiting[input] <= 0 {
				delete(left.waiting, input)
			}
		}
		if !complete {
			continue
		}
		x.fired[join] = true
		out = append(out, x.take(left, e)...)
		tried[join] = e.When == ""
	}
	return out
}

// take follows an edge, and every way its bounds can divert it.
func (x *explorer) take(m world, e *protocol.Edge) []world {
	put := func(m world, role string) {
		if _, ok := x.w.RoleNamed(role); ok {
			m.at[role]++
		}
	}
	var out []world
	if e.Limit > 0 {
		d := m.clone()
		put(d, e.OnLimit)
		out = append(out, d)
	}
	var full []string
	for _, role := range e.To {
		if r, ok := x.w.RoleNamed(role); ok && r.MaxVisits > 0 {
			full = append(full, role)
		}
	}
	for mask := range 1 << len(full) {
		d := m.clone()
		for _, role := range e.To {
			if k := slices.Index(full, role); k < 0 || mask&(1<<k) == 0 {
				put(d, role)
			}
		}
		if mask != 0 {
			put(d, e.OnLimit)
		}
		out = append(out, d)
	}
	return out
}

func randomFlow(t *rapid.T) *protocol.Workflow {
	w := &protocol.Workflow{}
	names := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(2, 5).Draw(t, "roles")]
	for _, name := range names {
		w.Roles = append(w.Roles, protocol.Role{
			Name: name, Action: protocol.ActPrompt,
			RouteAll: rapid.IntRange(0, 3).Draw(t, "all") == 0, MaxVisits: rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "max"),
		})
	}
	w.Edges = append(w.Edges, protocol.Edge{From: []string{"START"}, To: rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID[string]).Draw(t, "first")})
	for range rapid.IntRange(1, 8).Draw(t, "edges") {
		sources := rapid.SampledFrom([]int{1, 1, 1, 2, 2}).Draw(t, "sources")
		e := protocol.Edge{
			From:  rapid.SliceOfNDistinct(rapid.SampledFrom(names), sources, sources, rapid.ID[string]).Draw(t, "from"),
			To:    rapid.SliceOfNDistinct(rapid.SampledFrom(append(names[:len(names):len(names)], "END")), 1, 2, rapid.ID[string]).Draw(t, "to"),
			When:  rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "when"),
			Limit: rapid.IntRange(0, 1).Draw(t, "limit"),
		}
		e.OnFailure = sources == 1 && rapid.IntRange(0, 5).Draw(t, "failure") == 0
		if other := rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "on_limit"); !slices.Contains(e.To, other) {
			e.OnLimit = other
		}
		w.Edges = append(w.Edges, e)
	}
	return w
}

func TestTwoTokensInAJoinAreAlwaysRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := randomFlow(t)
		truth := explore(w)
		g := graphOf(w)
		said := netOf(g).explore()
		for k, group := range g.groups {
			join := strings.Join(group.from, "+")
			can := true
			for i, role := range group.from {
				p := said.net.inputs[k][i]
				if truth.double[join+"/"+role] && !said.pairs[p][p] {
					t.Errorf("join %s can hold two tokens of %s, lint does not know", join, role)
				}
				for _, q := range said.net.inputs[k][:i] {
					can = can && said.pairs[p][q]
				}
			}
			if truth.fired[join] && !can {
				t.Errorf("join %s can fire, lint says never", join)
			}
		}
		for n, role := range g.nodes {
			if truth.both[role] && !said.pairs[n][n] {
				t.Errorf("role %s can hold two tokens, lint does not know", role)
			}
		}

		refused := false
		for _, f := range Check(w, nil) {
			refused = refused || f.Code < "WF500"
		}
		for input, two := range truth.double {
			if two && !refused {
				t.Errorf("join input %s can hold two tokens, and nothing is refused", input)
			}
		}
	})
}

func TestFindingsAreTheSameEveryTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := randomFlow(t)
		if a, b := Check(w, nil), Check(w, nil); !slices.Equal(a, b) {
			t.Errorf("one workflow, two results:\n%v\n%v", a, b)
		}
	})
}

func TestBrokenDefinitionsAreReportedNotFatal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "START", "END", "FAIL", "SUSPEND", "x\x00y"}), 0, 3)
		text := rapid.OneOf(rapid.SampledFrom([]string{"", "output.x ==", "((((", "steps.a.b", "steps[1]", "!output.ok", "1 in [1", "output.exit_code in 0..9"}), rapid.String())
		w := &protocol.Workflow{}
		for range rapid.IntRange(0, 4).Draw(t, "roles") {
			w.Roles = append(w.Roles, protocol.Role{
				Name: rapid.SampledFrom([]string{"a", "b", "START", ""}).Draw(t, "role"), RouteAll: rapid.Bool().Draw(t, "all"), Prompt: text.Draw(t, "prompt"),
				Action: rapid.SampledFrom([]protocol.Action{"", protocol.ActRun, protocol.ActAsk, protocol.ActWait}).Draw(t, "action"),
			})
		}
		for range rapid.IntRange(0, 5).Draw(t, "edges") {
			w.Edges = append(w.Edges, protocol.Edge{
				From: names.Draw(t, "from"), To: names.Draw(t, "to"), When: text.Draw(t, "when"), Prompt: "${{" + text.Draw(t, "template") + "}}",
				OnFailure: rapid.Bool().Draw(t, "failure"), Limit: rapid.IntRange(-1, 1).Draw(t, "limit"), OnLimit: rapid.SampledFrom([]string{"", "a", "nobody"}).Draw(t, "on_limit"),
			})
		}
		for _, f := range Check(w, func(string) map[string][]any { return map[string][]any{"x": {[]any{1}, 1}, "ok": {true}} }) {
			if f.Code == "" || f.Path == "" || f.Message == "" {
				t.Errorf("incomplete finding %+v", f)
			}
		}
	})
}
