package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/protocol"
)

// Unknown is an end of an edge that the file has but that could not be read: nothing is said of
// it.
const Unknown = "?"

// A reading is what a definition with names that mean nothing may have meant. In the one, each
// such name is a role of its own, a stranger, of which nothing is known; in the other it is the
// role with the nearest name. What is true of both is true of the graph that the author has in
// mind, and so is reported beside the names.

// reading is one of them: its unknown names are resolved, the strangers are declared.
type reading struct {
	w         *protocol.Workflow
	strangers map[string]string // name → its spelling in the file
}

// stranger adds a role of which nothing is known. Words that have a meaning elsewhere, and every
// Unknown, stand for one each.
func (r *reading) stranger(edge int, name string) string {
	own := name
	if name == Unknown || Reserved(name) {
		own = fmt.Sprintf("%s(%d)", name, edge)
	}
	r.strangers[own] = name
	return own
}

// strange is the definition with its unknown names declared.
func (c *check) strange() reading {
	return c.read(func(r *reading, i int, name string, _ []string) string { return r.stranger(i, name) })
}

// meant is the definition with each unknown name replaced by the one that is nearest.
func (c *check) meant() reading {
	return c.read(func(r *reading, i int, name string, known []string) string {
		if near := nearest(name, known); near != "" && name != Unknown && !Reserved(name) {
			return near
		}
		return r.stranger(i, name)
	})
}

// read copies the definition with its unknown names resolved.
func (c *check) read(resolve func(r *reading, edge int, name string, known []string) string) reading {
	w := *c.w
	w.Edges, w.Roles = slices.Clone(w.Edges), slices.Clone(w.Roles)
	r := reading{&w, map[string]string{}}
	declared := map[string]bool{}
	for i := range w.Roles {
		declared[w.Roles[i].Name] = true
	}
	ends := func(i int, names, reserved []string) []string {
		names = slices.Clone(names)
		for k, name := range names {
			if !declared[name] && !slices.Contains(reserved, name) {
				names[k] = resolve(&r, i, name, c.known(reserved))
			}
		}
		return names
	}
	for i := range w.Edges {
		e := &w.Edges[i]
		e.From, e.To = ends(i, e.From, fromEnds), ends(i, e.To, toEnds)
		if e.OnLimit != "" {
			e.OnLimit = ends(i, []string{e.OnLimit}, limitEnds)[0]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.strangers)) {
		// Its bound is not known: no cycle through it is certain to be without one.
		w.Roles = append(w.Roles, protocol.Role{Name: name, MaxVisits: 1})
	}
	return r
}

// in looks at one reading: what it finds, but for what it finds of strangers.
func (c *check) in(r reading) []Finding {
	x := &check{w: r.w, enums: c.enums, g: graphOf(r.w)}
	x.g.strangers = r.strangers
	x.duplicates()
	x.neverTaken()
	x.reach()
	x.cycles()
	x.exhaustive()
	x.references()
	x.joins()
	x.visitBounds()
	x.overlaps()
	x.workspaces()
	x.lostCopies()
	found := slices.DeleteFunc(x.found, func(f Finding) bool {
		rest, ok := strings.CutPrefix(f.Path, "roles.")
		name, _, _ := strings.Cut(rest, ".")
		_, strange := r.strangers[name]
		return ok && strange || c.depends(f.Code)
	})
	for own, name := range r.strangers {
		for i := range found {
			found[i].Message = strings.ReplaceAll(found[i].Message, own, name)
			found[i].Hint = strings.ReplaceAll(found[i].Hint, own, name)
		}
	}
	return found
}

// depends reports whether findings of a code can follow from an end that could not be read, which
// may be any role.
func (c *check) depends(code string) bool {
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		switch {
		case !slices.Contains(append(append([]string{e.OnLimit}, e.From...), e.To...), Unknown):
		case code == "WF017" || code == "WF021":
			return true
		case slices.Contains(e.From, Unknown) && (code == "WF012" || code == "WF015"):
			return true
		case (slices.Contains(e.To, Unknown) || e.OnLimit == Unknown) && code == "WF011":
			return true
		}
	}
	return false
}

// common are the findings of the first list that all the others have too, by code and place.
func common(first []Finding, others ...[]Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(first), func(f Finding) bool {
		return slices.ContainsFunc(others, func(other []Finding) bool {
			return !slices.ContainsFunc(other, func(o Finding) bool { return o.Code == f.Code && o.Path == f.Path })
		})
	})
}
