package lang

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"wf/protocol"
)

// A Change is one edit by which a definition differs from another one: of a key of a role, an edge, an input, a
// limit or another part of the file, in the words of the language.
type Change struct {
	Key      string     // what it changes, such as roles.coder.prompt, limits.steps or "edge coder → test"
	Kind     ChangeKind // how
	Old, New string     // the values as texts; "" is where there is none

	within []string   // the roles that call the sub-workflow of which it is, outermost first
	sets   []setting  // what it sets, if it is of no edge
	edges  *edgePlan  // of all edges, if it is of one
	edge   edgeChange // which
}

// ChangeKind is what an edit does.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
	Moved   ChangeKind = "moved" // an edge that is tried at another time
)

// setting is the value of a place in a definition; a nil one is removed.
type setting struct {
	path  []string
	value any
}

// Differences are the edits that lead from one definition to another. They touch different places, and can be
// applied one without the other; which of them lint together is another matter.
//
//	roles     one for each key; one for a role that is added or removed, or whose action is another; of a role that
//	          calls a sub-workflow of the same name, those of the sub-workflow
//	edges     one for each: aligned by their ends, then by their text; one more where the order is another
//	inputs, limits, outputs, mcp, notify     one for each name
//	the rest     one for each key of the file
//
// sub gives the definitions of the sub-workflows of both; where it is nil a changed sub-workflow is one change.
func Differences(from, to *protocol.Workflow, sub Subs) ([]Change, error) {
	return differences(from, to, sub, nil)
}

// Subs gives the definition of a sub-workflow by its CID.
type Subs = func(protocol.Link) (*protocol.Workflow, error)

func differences(from, to *protocol.Workflow, sub Subs, within []string) ([]Change, error) {
	a, err := draftOf(from)
	if err != nil {
		return nil, err
	}
	b, err := draftOf(to)
	if err != nil {
		return nil, err
	}
	var out []Change
	for _, key := range bothKeys(a.top, b.top) {
		if keyedByName[key] {
			out = append(out, a.entries(b, key)...)
		} else {
			out = append(out, changesAt(a.top, b.top, nil, key)...)
		}
	}
	was, is := below(a.top, "roles"), below(b.top, "roles")
	for _, name := range bothKeys(was, is) {
		old, hadOne := was[name].(fields)
		now, hasOne := is[name].(fields)
		if !hadOne || !hasOne {
			out = append(out, changesAt(was, is, []string{"roles"}, name)...)
			continue
		}
		deeper, err := subChanges(from, to, name, sub, within)
		if err != nil {
			return nil, err
		}
		if len(deeper) > 0 {
			now["workflow"] = old["workflow"] // the changes below lead to it
		}
		out = append(out, roleChanges(name, old, now)...)
		out = append(out, deeper...)
	}
	out = append(out, newEdgePlan(a.edges, b.edges).changes()...)
	for i := range out {
		if out[i].within == nil && len(within) > 0 {
			out[i].within, out[i].Key = within, strings.Join(within, "/")+"/"+out[i].Key
		}
	}
	return out, nil
}

// subChanges are the changes of the sub-workflow that a role calls in both definitions; none where there is no such
// one, or it is another workflow.
func subChanges(from, to *protocol.Workflow, name string, sub Subs, within []string) ([]Change, error) {
	was, _ := from.RoleNamed(name)
	is, _ := to.RoleNamed(name)
	if sub == nil || !was.Workflow.Defined() || !is.Workflow.Defined() || was.Workflow == is.Workflow || len(within) >= maxNesting {
		return nil, nil
	}
	old, err := sub(was.Workflow)
	if err != nil {
		return nil, err
	}
	now, err := sub(is.Workflow)
	if err != nil || old.Name != now.Name {
		return nil, err
	}
	return differences(old, now, sub, append(slices.Clone(within), name))
}

// Apply makes the program of a definition with some of the changes that Differences found from it. Their order has no
// effect. sub gives the definitions of the sub-workflows of both. Where the result has errors the Program is nil.
func Apply(from *protocol.Workflow, some []Change, sub Subs, o Options) (*Program, []Diagnostic) {
	x := mixing{sub: sub, sources: map[string][]byte{}}
	src, err := x.source(from, some, 0)
	if err != nil {
		return nil, []Diagnostic{unwritten(err.Error())}
	}
	return loadWritten(src, x.sources, sub, o)
}

// mixing writes a definition with changes, and those of its sub-workflows that have some.
type mixing struct {
	sub     Subs
	sources map[string][]byte // of those, by the names that they get
}

// source is a definition with changes; those of its sub-workflows begin at a depth of their roles.
func (x *mixing) source(from *protocol.Workflow, some []Change, depth int) ([]byte, error) {
	d, err := draftOf(from)
	if err != nil {
		return nil, err
	}
	var plan *edgePlan
	applied := map[edgeChange]bool{}
	deeper := map[string][]Change{}
	for _, c := range some {
		if len(c.within) > depth {
			deeper[c.within[depth]] = append(deeper[c.within[depth]], c)
			continue
		}
		for _, s := range c.sets {
			d.set(s)
		}
		if c.edges != nil {
			plan, applied[c.edge] = c.edges, true
		}
	}
	if plan != nil {
		d.edges = plan.applied(applied)
	}
	for _, name := range sortedKeys(deeper) {
		role, ok := from.RoleNamed(name)
		if !ok {
			return nil, fmt.Errorf("role %s: there is none whose sub-workflow changes", name)
		}
		child, err := x.sub(role.Workflow)
		if err != nil {
			return nil, err
		}
		src, err := x.source(child, deeper[name], depth+1)
		if err != nil {
			return nil, err
		}
		file := fmt.Sprintf("mixed-%d.yaml", len(x.sources))
		x.sources[file] = src
		d.set(setting{[]string{"roles", name, "workflow"}, file})
	}
	return d.source()
}

// draft is a definition as it is written, taken apart.
type draft struct {
	top   fields // with the keys that lead to names as objects
	edges []fields
}

// keyedByName are the keys of the file that hold names with a value each; roles are looked at more closely.
var keyedByName = map[string]bool{"inputs": true, "limits": true, "outputs": true, "mcp": true, "notify": true, "on": true}

func draftOf(w *protocol.Workflow) (*draft, error) {
	top, err := writtenFields(w)
	if err != nil {
		return nil, err
	}
	d := &draft{top: top, edges: all(top, "edges")}
	delete(top, "edges")
	if sinks := all(top, "notify"); len(sinks) > 0 {
		byName := fields{}
		for _, s := range sinks {
			byName[s["name"].(string)] = s
		}
		top["notify"] = byName
	}
	return d, nil
}

// source is the draft as Load reads it.
func (d *draft) source() ([]byte, error) {
	top := maps.Clone(d.top)
	if sinks := below(top, "notify"); len(sinks) > 0 {
		var list []any
		for _, name := range slices.Sorted(maps.Keys(sinks)) {
			list = append(list, sinks[name])
		}
		top["notify"] = list
	}
	top["edges"] = d.edges
	return encodeFields(top)
}

// set puts a value into its place. Places of one draft are its own, since it was made from a definition.
func (d *draft) set(s setting) {
	at, last := d.top, len(s.path)-1
	for _, key := range s.path[:last] {
		inner, ok := at[key].(fields)
		if !ok {
			inner = fields{}
			at[key] = inner
		}
		at = inner
	}
	if s.value != nil {
		at[s.path[last]] = s.value
		return
	}
	delete(at, s.path[last])
	if above := s.path[0]; last == 1 && above != "roles" && len(below(d.top, above)) == 0 {
		delete(d.top, above) // as if nothing had been said
	}
}

// entries are the changes of a key that holds names with a value each.
func (d *draft) entries(to *draft, key string) (out []Change) {
	was, is := below(d.top, key), below(to.top, key)
	for _, name := range bothKeys(was, is) {
		out = append(out, changesAt(was, is, []string{key}, name)...)
	}
	return out
}

// changesAt is the change of one key below a path, none where both say the same.
func changesAt(was, is fields, path []string, key string) []Change {
	old, now := was[key], is[key]
	if same(old, now) || key == "roles" && len(path) == 0 {
		return nil
	}
	whole := append(slices.Clone(path), key)
	return []Change{{Key: strings.Join(whole, "."), Kind: kindOf(old, now), Old: textOfPart(old), New: textOfPart(now), sets: []setting{{whole, now}}}}
}

func kindOf(old, now any) ChangeKind {
	switch {
	case old == nil:
		return Added
	case now == nil:
		return Removed
	}
	return Changed
}

// roleChanges are those of a role that both definitions have. Where its action is another, what belongs to the old
// or the new action alone is one change with it.
func roleChanges(name string, was, is fields) (out []Change) {
	before, after := actionOf(was), actionOf(is)
	acts := Change{Key: "roles." + name + ".action", Kind: Changed}
	old, now := fields{}, fields{}
	for _, key := range bothKeys(was, is) {
		action := slices.Contains(actions, protocol.Action(key))
		if before != after && (action || !effective(key, before) || !effective(key, after)) {
			acts.sets = append(acts.sets, setting{[]string{"roles", name, key}, is[key]})
			copyKey(old, was, key)
			copyKey(now, is, key)
			continue
		}
		out = append(out, changesAt(was, is, []string{"roles", name}, key)...)
	}
	if before != after {
		acts.Old, acts.New = textOfPart(old), textOfPart(now)
		out = append([]Change{acts}, out...)
	}
	return out
}

func copyKey(to, from fields, key string) {
	if v, ok := from[key]; ok {
		to[key] = v
	}
}

func actionOf(role fields) protocol.Action {
	for _, a := range actions {
		if _, ok := role[string(a)]; ok {
			return a
		}
	}
	return ""
}

// below is an object in an object, nil where there is none.
func below(m fields, key string) fields {
	p, _ := m[key].(fields)
	return p
}

// bothKeys are the keys of two objects, sorted.
func bothKeys[V any](a, b map[string]V) []string {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]V{}
	}
	maps.Copy(keys, b)
	return sortedKeys(keys)
}

// same compares values as they are written.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}

// textOfPart is a value for people: a text as it is, a list of texts with commas, an object with a line for each key.
func textOfPart(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []string:
		return strings.Join(v, ", ")
	case []any:
		if words, ok := wordsOf(v); ok {
			return strings.Join(words, ", ")
		}
	case fields:
		var b strings.Builder
		for _, key := range sortedKeys(v) {
			text := textOfPart(v[key])
			if strings.Contains(text, "\n") {
				text = "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
			} else {
				text = " " + text
			}
			b.WriteString(key + ":" + text + "\n")
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// wordsOf is a list that has texts alone.
func wordsOf(list []any) (out []string, ok bool) {
	for _, x := range list {
		word, ok := x.(string)
		if !ok {
			return nil, false
		}
		out = append(out, word)
	}
	return out, true
}

// changeWidth is how many characters of a value a line shows.
const changeWidth = 40

// String is the change as one line, with the values cut to where they differ.
func (c Change) String() string {
	old, now := oneLine(c.Old), oneLine(c.New)
	switch c.Kind {
	case Added, Removed:
		text := cutAt(cmp.Or(now, old), 0)
		if text == "" {
			return c.Key + ": " + string(c.Kind)
		}
		return fmt.Sprintf("%s: %s %q", c.Key, c.Kind, text)
	case Moved:
		return c.Key + ": moved"
	}
	begin := 0
	for begin < min(len(old), len(now)) && old[begin] == now[begin] {
		begin++
	}
	return fmt.Sprintf("%s: %q → %q", c.Key, cutAt(old, begin), cutAt(now, begin))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cutAt is what a line shows of a text, which holds the byte at begin.
func cutAt(s string, begin int) string {
	from := 0
	if begin > changeWidth/2 {
		from = begin - changeWidth/4
		for from > 0 && !utf8.RuneStart(s[min(from, len(s)-1)]) {
			from--
		}
	}
	head := ""
	if from > 0 && from <= len(s) {
		head, s = "…", s[from:]
	}
	runes := 0
	for i := range s {
		if runes++; runes > changeWidth {
			return head + s[:i] + "…"
		}
	}
	return head + s
}
