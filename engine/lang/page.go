package lang

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"wf/protocol/lazy"
)

// guideFiles are the hand-written parts of the page. The first line of each is a comment with further words by
// which it is found, the second its heading.
//
//go:embed guides/*.md
var guideFiles embed.FS

// expressionsGuide is the guide that ends with the list of functions.
const expressionsGuide = "expressions"

// guideOrder names the guides in the order of the page.
var guideOrder = []string{expressionsGuide, "loops", "fan-out", "approvals", "secrets", "retries", "output-contracts",
	"sub-workflows", "own-copies", "context", "limits", "concurrency", "schedules", "webhooks", "sandbox", "caching"}

// A guide is a part of the page that a person wrote.
type guide struct {
	name  string
	words []string // by which it is found too
	title string
	text  string // Markdown, with its heading
}

var guideWords = lazy.Regexp(`^<!-- also: (.*) -->\n`)

var guides = sync.OnceValue(func() []guide {
	var out []guide
	for _, name := range guideOrder {
		text := guideText(name)
		g := guide{name: name, text: text}
		if m := guideWords().FindStringSubmatch(text); m != nil {
			g.words, g.text = strings.Split(m[1], ", "), strings.TrimPrefix(text, m[0])
		}
		if name == expressionsGuide {
			g.text += functionList()
		}
		first, _, _ := strings.Cut(g.text, "\n")
		g.title = strings.TrimPrefix(first, "## ")
		out = append(out, g)
	}
	return out
})

func guideText(name string) string {
	b, err := guideFiles.ReadFile(path.Join("guides", name+".md"))
	if err != nil {
		panic("lang: a guide is missing: " + err.Error())
	}
	return string(b)
}

// parts of the reference: what the keys below a path belong to. A path of the file itself is "".
var parts = []struct{ below, title, about string }{
	{"", "Keys of the file", "Keys at the top of a workflow file. Keys that begin with `x-` are ignored: they are a place for YAML anchors."},
	{"inputs.*", "Keys of an input", "`inputs: {NAME: TYPE}` is short for `inputs: {NAME: {type: TYPE}}`."},
	{"limits", "Keys of limits", ""},
	{"on", "Keys of schedules and webhooks", ""},
	{"mcp.*", "Keys of an MCP server", "A server has a `command` or a `url`, not both. The examples are one server each."},
	{"roles.*", "Keys of a role", "A role has exactly one of `prompt`, `run`, `ask`, `workflow`, `wait` and `set`. A key beside an action on which it has no effect is an error. The examples are the content of one role."},
	{"edges.*", "Keys of an edge", "The examples are one edge each."},
}

// partOf is the index of the part to which a path belongs: the longest that it is below.
func partOf(p string) int {
	best := 0
	for i := range parts {
		if strings.HasPrefix(p, parts[i].below+".") {
			best = i
		}
	}
	return best
}

// Page is docs/language.md: the guides and every key. It is what wf help language shows.
func Page() string {
	var b strings.Builder
	b.WriteString(guideText("start"))
	b.WriteString("\n## Contents\n\nGuides:\n\n")
	for _, g := range guides() {
		fmt.Fprintf(&b, "- [%s](#%s): `wf help language %s`\n", g.title, anchor(g.title), g.name)
	}
	b.WriteString("\nKeys:\n\n")
	for _, p := range parts {
		fmt.Fprintf(&b, "- [%s](#%s)\n", p.title, anchor(p.title))
	}
	for _, g := range guides() {
		b.WriteString("\n" + g.text)
	}
	for i, p := range parts {
		fmt.Fprintf(&b, "\n## %s\n", p.title)
		if p.about != "" {
			b.WriteString("\n" + p.about + "\n")
		}
		for _, e := range reference() {
			if partOf(e.Path) == i {
				b.WriteString("\n" + e.markdown())
			}
		}
	}
	return b.String()
}

var noAnchor = lazy.Regexp(`[^a-z0-9 -]`)

// anchor is how a heading is linked to.
func anchor(title string) string {
	return strings.ReplaceAll(noAnchor().ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// markdown is what the page says of a key.
func (e Entry) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### `%s`\n\n%s\n\n", e.Path, e.Doc)
	fmt.Fprintf(&b, "- Type: %s\n", e.Type)
	switch without := e.Without; {
	case e.Required:
		b.WriteString("- Required\n")
	case e.Default != "":
		fmt.Fprintf(&b, "- Default: `%s`%s\n", e.Default, strings.TrimPrefix(without, e.Default))
	case without != "":
		fmt.Fprintf(&b, "- Default: %s\n", without)
	}
	if len(e.Actions) > 0 {
		fmt.Fprintf(&b, "- Beside: `%s`\n", strings.Join(e.Actions, "`, `"))
	}
	switch {
	case e.Effect != "":
		fmt.Fprintf(&b, "- Becomes: %s\n", e.Effect)
	case e.Unit != "":
		fmt.Fprintf(&b, "- Becomes: `%s`, %s\n", e.Fields[0], e.Unit)
	default:
		fmt.Fprintf(&b, "- Becomes: `%s`\n", strings.Join(e.Fields, "`, `"))
	}
	fmt.Fprintf(&b, "\n```yaml\n%s\n```\n", e.Example)
	return b.String()
}

// A Found is what the page has under a name.
type Found struct {
	Text string // Markdown; "" where there is nothing
	Near string // then the name that was probably meant, or ""
}

// Find looks up a part of the page: a guide by its name (fan-out), or keys by their path or the end of
// it (retry, roles.*.retry, roles.coder.retry, defaults.retry).
func Find(name string) Found {
	name = strings.ToLower(strings.TrimSpace(name))
	var text []string
	for _, e := range entriesNamed(name) {
		text = append(text, e.markdown())
	}
	for _, g := range guides() {
		if g.name == name || slices.Contains(g.words, name) || strings.ToLower(g.title) == name {
			text = append(text, g.text)
		}
	}
	if len(text) > 0 {
		return Found{Text: strings.Join(text, "\n")}
	}
	return Found{Near: nearest(name, names())}
}

// entriesNamed are the keys that a path names: those that it names in full, else those with
// a path that ends so.
func entriesNamed(name string) []Entry {
	want := strings.FieldsFunc(strings.NewReplacer("[", ".", "]", ".").Replace(name), func(r rune) bool { return r == '.' })
	if len(want) == 0 {
		return nil
	}
	if want[0] == "defaults" && len(want) > 1 {
		want[0] = "roles"
	}
	var out []Entry
	for _, whole := range []bool{true, false} {
		for _, e := range reference() {
			if named(strings.Split(e.Path, "."), want, whole) {
				out = append(out, withBelow(e)...)
			}
		}
		if len(out) > 0 && len(want) > 1 {
			break // of a longer path the whole one is meant
		}
	}
	return out
}

// withBelow is a key with those below it.
func withBelow(e Entry) []Entry {
	out := []Entry{e}
	for _, sub := range reference() {
		if strings.HasPrefix(sub.Path, e.Path+".") {
			out = append(out, sub)
		}
	}
	return out
}

// named reports whether want names a path: the whole of it, or an end of it that is not the whole.
func named(path, want []string, whole bool) bool {
	if whole {
		return leads(path, want)
	}
	for i := 1; i < len(path); i++ {
		if path[i] != "*" && leads(path[i:], want) {
			return true
		}
	}
	return false
}

// leads reports whether a path is named by want, in which a * may be left out or be a name.
func leads(path, want []string) bool {
	switch {
	case len(path) == 0 || len(want) == 0:
		return len(path) == len(want)
	case path[0] == "*":
		return leads(path[1:], want) || leads(path[1:], want[1:])
	}
	return path[0] == want[0] && leads(path[1:], want[1:])
}

// names are all by which something is found, for suggestions.
func names() []string {
	var out []string
	for _, g := range guides() {
		out = append(append(out, g.name), g.words...)
	}
	for _, e := range reference() {
		out = append(out, e.Path[strings.LastIndex(e.Path, ".")+1:], e.Path)
	}
	return out
}

// Topics are the names of the guides and the paths of the keys, for completion.
func Topics() []string {
	var out []string
	for _, g := range guides() {
		out = append(out, g.name)
	}
	for _, e := range reference() {
		out = append(out, e.Path)
	}
	return out
}
