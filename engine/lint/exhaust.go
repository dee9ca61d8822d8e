package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"wf/protocol"
)

// exhaustive reports a value of an enum, or an exit code, for which certainly no edge holds,
// so that the token would stay where it is (WF015); and conditions on an exit code that a
// role which fails on it never shows (WF507).
func (c *check) exhaustive() {
	batch := map[string]bool{}
	for i := range c.w.Edges {
		if c.w.Edges[i].ForEach != "" {
			for _, to := range c.w.Edges[i].To {
				batch[to] = true // its output is an array
			}
		}
	}
	for n, name := range c.g.nodes[1:] {
		offers := c.g.offers[n+1]
		if batch[name] || len(offers) == 0 || slices.ContainsFunc(offers, c.g.unconditional) {
			continue
		}
		var edges []int
		for _, o := range offers {
			edges = append(edges, o.edge)
		}
		c.covers(edges, "output", &c.w.Roles[n])
	}
	for _, group := range c.g.groups {
		if slices.ContainsFunc(group.edges, func(i int) bool { return always(&c.w.Edges[i]) }) {
			continue
		}
		for _, from := range group.from {
			if r, ok := c.w.RoleNamed(from); ok && !batch[from] {
				c.covers(group.edges, "outputs."+from, r)
			}
		}
	}
	c.unseenExits(batch)
}

// covers checks each closed field of the role's output, as the conditions of edges see it.
func (c *check) covers(edges []int, root string, r *protocol.Role) {
	var conditions []ast.Node
	for _, i := range edges {
		condition, err := parse(c.w.Edges[i].When)
		if err != nil {
			return // reported where it is compiled
		}
		conditions = append(conditions, condition)
	}
	for _, f := range c.fields(r) {
		var missing []any
		for _, v := range f.values {
			given := given{root + "." + f.name, v}
			if !slices.ContainsFunc(conditions, func(n ast.Node) bool { return !given.surely(false, n) }) {
				missing = append(missing, v)
			}
		}
		if len(missing) == 0 {
			continue
		}
		last := edges[len(edges)-1]
		from := strings.Join(c.w.Edges[last].From, ", ")
		source := from
		if len(c.w.Edges[last].From) > 1 {
			source = "[" + from + "]"
		}
		hint := fmt.Sprintf("add an edge for it, or a default at the end: {from: %s, to: …}", source)
		if f.name == "exit_code" && r.Action == protocol.ActRun && !r.ContinueOnError {
			hint = "other exit codes fail the role: set  continue_on_error: true , or use  on: failure  edges for them"
		}
		c.edge(last, "WF015", edgePath(last, "when"),
			fmt.Sprintf("no edge of %s is taken when %s.%s is %s", from, root, f.name, list(missing)), hint)
	}
}

// field is an output field with all the values it can have.
type field struct {
	name   string
	values []any // JSON values, whole numbers as float64
}

// fields are the closed fields of a role, by name.
func (c *check) fields(r *protocol.Role) []field {
	known := map[string][]any{}
	if c.enums != nil {
		maps.Copy(known, c.enums(r.Name))
	}
	var fields []field
	if r.Action == protocol.ActRun {
		delete(known, "exit_code")
		fields = append(fields, field{"exit_code", exitCodes(r)})
	}
	if _, ok := known["choice"]; !ok && r.Action == protocol.ActAsk && len(r.Choices) > 0 {
		f := field{name: "choice"}
		for _, choice := range r.Choices {
			f.values = append(f.values, choice.Value)
		}
		fields = append(fields, f)
	}
	for name, values := range known {
		f := field{name: name}
		for _, v := range values {
			if n, ok := v.(int); ok {
				v = float64(n) // as literals are read
			}
			f.values = append(f.values, v)
		}
		fields = append(fields, f)
	}
	protocol.Sort(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields
}

// exitCodes are those that a finished step of the role can show.
func exitCodes(r *protocol.Role) []any {
	codes := []any{0.0}
	for code := 1; r.ContinueOnError && code <= 255; code++ {
		codes = append(codes, float64(code))
	}
	return codes
}

// unseenExits warns of a condition that only a failed command could fulfil, on a role if its
// failures do not come this way.
func (c *check) unseenExits(batch map[string]bool) {
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		if len(e.From) != 1 {
			continue
		}
		r, ok := c.w.RoleNamed(e.From[0])
		if !ok || r.Action != protocol.ActRun || r.ContinueOnError || e.OnFailure || e.When == "" || batch[r.Name] {
			continue
		}
		condition, err := parse(e.When)
		if err != nil {
			continue // reported where it is compiled
		}
		if refs, err := Refs(e.When); err != nil || !slices.Contains(refs, "output.exit_code") {
			continue
		}
		if (given{"output.exit_code", 0.0}).surely(false, condition) {
			c.edge(i, "WF507", edgePath(i, "when"),
				fmt.Sprintf("the condition never holds: a command that exits non-zero has failed, and %s shows 0 here", r.Name),
				fmt.Sprintf("set  continue_on_error: true  on %s, or make this an  on: failure  edge", r.Name))
		}
	}
}

// list writes values for people; runs of whole numbers become ranges.
func list(values []any) string {
	var out []string
	for i := 0; i < len(values); {
		first, ok := values[i].(float64)
		k := i + 1
		for ok && k < len(values) && values[k] == first+float64(k-i) {
			k++
		}
		if ok && k-i > 2 {
			out = append(out, fmt.Sprintf("%v–%v", first, values[k-1]))
		} else {
			k = i + 1
			out = append(out, literal(values[i]))
		}
		i = k
	}
	return strings.Join(out, " or ")
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}
