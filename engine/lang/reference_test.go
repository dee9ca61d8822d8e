package lang

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wf/engine/lint"
	"wf/protocol"
)

// childFile is the sub-workflow that the examples name.
const childFile = "wf: 1\nname: child\ninputs: {n: {type: integer, default: 1}}\nroles: {a: {set: {x: 1}}}"

// exampleRoles are the roles that the examples of edges name.
const exampleRoles = `roles:
  list:
    run: ls
    output: {type: object, required: [files], properties: {files: {type: array, items: {type: string}}}}
`

// inPlace makes a workflow of an example.
func inPlace(e Entry, example string) string {
	head := "wf: 1\nname: t\nlimits: {cost_usd: 1, duration: 1h}\n"
	roles := "roles: {test: {run: ls}}\n"
	switch parts[partOf(e.Path)].below {
	case "inputs.*":
		return head + "inputs:\n  x: " + example + "\n" + roles
	case "mcp.*":
		return head + "secrets: [TOKEN]\nmcp:\n  tracker: " + example + "\n" + roles
	case "roles.*":
		lines := "    " + strings.ReplaceAll(example, "\n", "\n    ")
		if !slices.ContainsFunc(actions, func(a protocol.Action) bool { return strings.Contains("\n"+example, "\n"+string(a)+":") }) {
			act := append(slices.Clone(e.Actions), "run")[0]
			lines += "\n    " + act + ": " + samples[act]
		}
		text := head + "inputs: {package: {type: string, default: x}}\nroles:\n  a:\n" + lines + "\n"
		if strings.Contains(example, "from: [build]") {
			text += "  build: {run: make dist, artifacts: [dist/**]}\nedges:\n  - {from: START, to: build}\n  - {from: build, to: a}\n  - {from: a, to: END}\n"
		}
		return text
	case "edges.*":
		return head + edgeInPlace(example)
	}
	file := example + "\n"
	for _, line := range strings.SplitAfter(head+roles, "\n") {
		name, _, _ := strings.Cut(line, ":")
		if name != "" && !strings.Contains("\n"+file, "\n"+name+":") {
			file += line
		}
	}
	return file
}

var edgeEnd = regexp.MustCompile(`\b(from|to|on_limit): (?:\[([^\]]*)\]|([A-Za-z]+))`)

// edgeInPlace makes a workflow around one edge: START leads to where it begins, and what it leads to
// leads to END.
func edgeInPlace(edge string) string {
	roles, ends := exampleRoles, "edges:\n"
	added, joined := map[string]bool{"list": true}, false
	var from string
	for _, m := range edgeEnd.FindAllStringSubmatch(edge, -1) {
		names := m[2] + m[3]
		if m[1] == "from" {
			from, joined = names, m[2] != ""
		}
		for _, name := range strings.Split(names, ", ") {
			if !added[name] && !lint.Reserved(name) {
				added[name] = true
				roles += "  " + name + ": {run: make " + name + ", continue_on_error: true}\n"
			}
			if m[1] != "from" && !lint.Reserved(name) {
				ends += "  - {from: " + name + ", to: END}\n"
			}
		}
	}
	if !strings.Contains(edge, "from: list") {
		roles = strings.Replace(roles, exampleRoles, "roles:\n", 1)
	}
	if from == protocol.NodeStart {
		return roles + ends + "  - " + edge + "\n"
	}
	ends += "  - {from: START, to: [" + from + "]}\n  - " + edge + "\n"
	if !joined && (strings.Contains(edge, "when:") || strings.Contains(edge, "on: failure")) {
		ends += "  - {from: " + from + ", to: FAIL}\n"
	}
	return roles + ends
}

func loadExample(t *testing.T, src string) *Program {
	t.Helper()
	p, ds := Load([]byte(src), Options{Read: func(string) ([]byte, error) { return []byte(childFile), nil }})
	if p == nil {
		var b strings.Builder
		Render(&b, []byte(src), ds, false)
		t.Fatalf("it does not load:\n%s\n%s", src, b.String())
	}
	return p
}

// TestEveryExampleOfTheReferenceLoads holds for each key: its example is part of a workflow, and the field
// that the key is said to become is there and set.
func TestEveryExampleOfTheReferenceLoads(t *testing.T) {
	for _, e := range Reference() {
		t.Run(e.Path, func(t *testing.T) {
			p := loadExample(t, inPlace(e, e.Example))
			for i, field := range e.Fields {
				values, known := fieldAt(reflect.ValueOf(p.Workflow), field)
				if !known {
					t.Fatalf("the definition has no field %s", field)
				}
				if i > 0 {
					continue // of several fields an example may need one
				}
				set := false
				for _, v := range values {
					set = set || !v.IsZero()
				}
				if !set {
					t.Errorf("its example does not set %s", field)
				}
			}
		})
	}
}

// fieldAt finds the values of a field by its names in the canonical block, and whether there is such a
// field at all.
func fieldAt(v reflect.Value, path string) (values []reflect.Value, known bool) {
	name, rest, more := strings.Cut(path, ".")
	name = strings.TrimSuffix(name, "[]")
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("cbor"), ",")
		if tag != name {
			continue
		}
		f := v.Field(i)
		if !more {
			return []reflect.Value{f}, true
		}
		elems := []reflect.Value{f}
		switch f.Kind() {
		case reflect.Slice, reflect.Map:
			elems = nil
			for _, x := range f.Seq2() {
				elems = append(elems, x)
			}
			if len(elems) == 0 {
				elems = []reflect.Value{reflect.New(f.Type().Elem()).Elem()}
			}
		}
		for _, e := range elems {
			got, ok := fieldAt(e, rest)
			known = known || ok
			values = append(values, got...)
		}
		return values, known
	}
	return nil, false
}

func TestEveryKeyOfTheReferenceIsExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Reference() {
		switch name := e.Path[strings.LastIndex(e.Path, ".")+1:]; {
		case seen[e.Path]:
			t.Errorf("%s is there twice", e.Path)
		case !strings.HasSuffix(e.Doc, "."):
			t.Errorf("%s: %q is no sentence", e.Path, e.Doc)
		case e.Required && e.Without != "":
			t.Errorf("%s is required, and has a default", e.Path)
		case !e.Required && e.Without == "" && !strings.Contains("prompt run ask workflow wait set", name):
			t.Errorf("%s does not say what holds without it", e.Path)
		case (e.Effect == "") == (len(e.Fields) == 0):
			t.Errorf("%s wants either fields or an effect", e.Path)
		case e.Type == "" || strings.Contains(e.Type, "mapping of names to: any value; or"):
			t.Errorf("%s has the type %q", e.Path, e.Type)
		case !strings.Contains(e.Example, name):
			t.Errorf("the example of %s does not show it: %s", e.Path, e.Example)
		}
		seen[e.Path] = true
	}
	if len(seen) < 90 {
		t.Errorf("%d keys were found, want 90 or more", len(seen))
	}
}

// elsewhereProven are the defaults that the definition does not drop, each with the test that holds it
// against the code.
var elsewhereProven = map[string]string{
	"limits.steps":            "TestTheDefaultsOfTheReferenceAreThoseOfTheEngine",
	"edges.*.on_limit":        "TestTheDefaultOfOnLimitIsThatOfTheReference",
	"roles.*.retry.delay":     "TestTheDefaultsOfTheReferenceAreThoseOfTheEngine",
	"roles.*.retry.factor":    "TestTheDefaultsOfTheReferenceAreThoseOfTheEngine",
	"roles.*.retry.max_delay": "TestTheDefaultsOfTheReferenceAreThoseOfTheEngine",
	"roles.*.max_turns":       "TestTheDefaultsOfTheReferenceAreThoseOfAgents",
	"roles.*.compaction.keep": "TestTheDefaultsOfTheReferenceAreThoseOfAgents",
	"roles.*.memory.top_k":    "TestTheDefaultsOfTheReferenceAreThoseOfAgents",
}

// TestADefaultThatIsWrittenChangesNothing writes each default in the place of the example's value: the
// definition is the one without the key.
func TestADefaultThatIsWrittenChangesNothing(t *testing.T) {
	tests := testsOfTheTree(t)
	for _, e := range Reference() {
		if e.Default == "" {
			continue
		}
		if proof, ok := elsewhereProven[e.Path]; ok {
			if !tests[proof] {
				t.Errorf("%s: there is no test %s", e.Path, proof)
			}
			continue
		}
		key := regexp.MustCompile(`(, )?\b(` + e.Path[strings.LastIndex(e.Path, ".")+1:] + `: )(\[[^\]]*\]|\{[^}]*\}|[^,}\n]+)`)
		if !key.MatchString(e.Example) {
			t.Errorf("%s: its example has no value of it: %s", e.Path, e.Example)
			continue
		}
		written := key.ReplaceAllString(e.Example, "${1}${2}"+e.Default)
		left := strings.ReplaceAll(key.ReplaceAllString(e.Example, ""), "{, ", "{")
		with, without := loadExample(t, inPlace(e, written)), loadExample(t, inPlace(e, left))
		a, err := with.Block()
		if err != nil {
			t.Fatal(err)
		}
		b, err := without.Block()
		if err != nil {
			t.Fatal(err)
		}
		if a.Link != b.Link {
			t.Errorf("%s: writing its default %s makes another definition than leaving it out:\n%s\n%s", e.Path, e.Default, inPlace(e, written), inPlace(e, left))
		}
	}
}

// TestTheWorkflowsOfTheGuidesAreClean loads every example of a guide: no error and no warning.
func TestTheWorkflowsOfTheGuidesAreClean(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```\n")
	for _, name := range append([]string{"start"}, guideOrder...) {
		blocks := block.FindAllStringSubmatch(guideText(name), -1)
		if len(blocks) == 0 {
			t.Errorf("the guide %s has no example", name)
		}
		for _, b := range blocks {
			src := b[1]
			if !strings.HasPrefix(src, "wf: ") {
				src = "wf: 1\nname: part\nlimits: {duration: 1h}\n" + src
			}
			_, ds := Load([]byte(src), Options{Read: func(string) ([]byte, error) { return []byte(childFile), nil }})
			if len(ds) > 0 {
				var out strings.Builder
				Render(&out, []byte(src), ds, false)
				t.Errorf("%s:\n%s", name, out.String())
			}
		}
	}
}

func TestAPartOfThePageIsFoundByItsName(t *testing.T) {
	for name, want := range map[string]string{
		"retry":               "### `roles.*.retry.max_delay`",
		"roles.*.retry":       "### `roles.*.retry`",
		"roles.coder.retry":   "### `roles.*.retry`",
		"roles.retry.delay":   "### `roles.*.retry.delay`",
		"defaults.timeout":    "### `roles.*.timeout`",
		"edges[3].when":       "### `edges.*.when`",
		"when":                "### `edges.*.when`",
		"on":                  "### `roles.*.retry.on`",
		"limits.cost_usd":     "### `limits.cost_usd`",
		"fan-out":             "## Fan-out and joins",
		"Fan-out and joins":   "## Fan-out and joins",
		"parallel":            "## Fan-out and joins",
		"secrets":             "## Secrets",
		"mcp.tracker.command": "### `mcp.*.command`",
	} {
		if got := Find(name); !strings.Contains(got.Text, want) {
			t.Errorf("%s: %q lacks %q", name, got.Text, want)
		}
	}
	for name, near := range map[string]string{"retyr": "retry", "lops": "loops", "for-each": "for_each", "roles.*.timout": "roles.*.timeout", "zzzzzz": ""} {
		if got := Find(name); got.Text != "" || got.Near != near {
			t.Errorf("%s: %q, near %q, want %q", name, got.Text, got.Near, near)
		}
	}
	for _, topic := range Topics() {
		if Find(topic).Text == "" {
			t.Errorf("%s is not found", topic)
		}
	}
	if got := Find("roles.*.timeout").Text; strings.Contains(got, "mcp") || strings.Count(got, "###") != 1 {
		t.Errorf("a key named in full gives %q", got)
	}
}

// TestAHintNamesAPartThatThereIs follows the advice of errors.
func TestAHintNamesAPartThatThereIs(t *testing.T) {
	advised := regexp.MustCompile(`^wf help language (\S+) shows`)
	for place, want := range map[string]string{
		"roles.coder.retry.on[1]": "roles.coder.retry.on", "edges[0].to": "edges", "roles.a.env.X": "roles.a.env", "inputs.n": "inputs",
	} {
		m := advised.FindStringSubmatch(helpOn(place))
		if m == nil || m[1] != want || Find(m[1]).Text == "" {
			t.Errorf("%s: %q", place, helpOn(place))
		}
	}
}

// A factor below 1 is read nowhere: the pauses would not shrink.
func TestAFactorOfRetryWithoutAnEffectIsRefused(t *testing.T) {
	for factor, want := range map[string]string{"0.5": "retry.factor is 0.5; it must be at least 1", "1": "", "1.5": ""} {
		_, ds := Load([]byte("wf: 1\nname: t\nlimits: {duration: 1h}\nroles: {a: {run: ls, retry: {attempts: 2, factor: "+factor+"}}}"), Options{})
		var got []string
		for _, d := range ds {
			got = append(got, d.Message)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", factor, got, want)
		}
	}
}
