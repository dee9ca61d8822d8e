package wf_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"
)

// published renders prompts by docs/format.md, section 5.
type published struct {
	*archive
	frontmatter, tasks, taskOutput string // the texts of the page
	steps                          map[string]*under
	at                             *under // the visit of the newest prompt
	format                         int64
}

// under is a visit as its events stand.
type under struct {
	record // its step_started
	goal   string
}

// quoted are the texts that the page gives verbatim, in its order.
var quoted = regexp.MustCompile("(?s)````text\n(.*?)\n````")

func newPublished(t *testing.T, a *archive, page string) *published {
	t.Helper()
	texts := quoted.FindAllStringSubmatch(page, -1)
	if len(texts) != 3 {
		t.Fatalf("the page gives %d texts verbatim", len(texts))
	}
	return &published{archive: a, frontmatter: texts[0][1], tasks: texts[1][1], taskOutput: texts[2][1], steps: map[string]*under{}}
}

// take goes on with an event, and gives the digest of one that tells a prompt.
func (p *published) take(e record) (digest string) {
	step, _ := e["step"].(string)
	data, _ := e["data"].(record)
	u := p.steps[step]
	switch e["type"] {
	case "step_started":
		if u == nil || link(u.record["start"]) != link(data["start"]) {
			p.steps[step] = &under{record: data}
		} else if n, _ := data["messages"].(uint64); n > 0 {
			u.record["inject"] = data["inject"]
		}
	case "compacted":
		if data["scope"] == "conversation" {
			u.record["resumes"] = data["record"]
		}
	case "task_started":
		u.goal = data["goal"].(string)
	case "prompt":
		p.at = u
		p.format = integer(p.start(u.record)["format"])
		return data["digest"].(string)
	}
	return ""
}

func integer(v any) int64 {
	switch v := v.(type) {
	case uint64:
		return int64(v)
	case int64:
		return v
	}
	return 0
}

func (p *published) start(r record) record    { return p.record(link(r["start"])) }
func (p *published) workflow(r record) record { return p.record(link(p.start(r)["workflow"])) }

func (p *published) role(r record) record {
	roles, _ := p.workflow(r)["roles"].([]any)
	for _, v := range roles {
		if role := v.(record); role["name"] == r["role"] {
			return role
		}
	}
	p.t.Fatalf("no role %v", r["role"])
	return nil
}

// mentions are those of the edge by which a visit was entered.
func (p *published) mentions(r record) (out []string) {
	edges, _ := p.workflow(r)["edges"].([]any)
	at := integer(r["edge"])
	if at < 0 || at >= int64(len(edges)) {
		return nil
	}
	list, _ := edges[at].(record)["mentions"].([]any)
	for _, m := range list {
		out = append(out, m.(string))
	}
	return out
}

// digest is 5.1.
func (p *published) digest() string {
	sum := sha256.Sum256([]byte(p.bytes()))
	cid := append([]byte{1, 0x55, 0x12, 0x20}, sum[:]...)
	return "b" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(cid))
}

func (p *published) bytes() string {
	tools := p.text(p.at.record["tools"])
	if tools == "" {
		tools = "[]"
	}
	var b strings.Builder
	b.WriteString(tools + "\n")
	for _, m := range p.messages(tools) {
		b.WriteString(`{"role":` + escaped(m[0]) + `,"content":` + escaped(m[1]) + "}\n")
	}
	return b.String()
}

// escaped is a string of JSON by 5.1.
func escaped(s string) string {
	short := map[rune]string{'"': `\"`, '\\': `\\`, 8: `\b`, 9: `\t`, 10: `\n`, 12: `\f`, 13: `\r`}
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case short[r] != "":
			b.WriteString(short[r])
		case r < 0x20 || r == 0x2028 || r == 0x2029 || r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// parts is 5.2.
func parts(all ...string) string {
	var kept []string
	for _, s := range all {
		if s = strings.Trim(s, "\n"); strings.TrimSpace(s) != "" {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "\n\n")
}

func cutTo(s string, most int, cid string) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most]) + more(len(runes)-most, cid)
}

func more(n int, cid string) string {
	return fmt.Sprintf("…[%d more, b%s]", n, strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(cid))))
}

// conversation is what 5.3 finds.
type conversation struct {
	turns   []string // CIDs, oldest first
	summary string
	covers  string
}

func (p *published) conversation() (c conversation) {
	for at := link(p.at.record["resumes"]); at != "" && at != c.covers; {
		r := p.record(at)
		if r["kind"] == "compaction" {
			if c.covers == "" {
				c.covers, c.summary = link(r["covers"]), parts(p.text(r["summary"]), p.text(r["inject"]))
			}
			at = link(r["prior"])
			continue
		}
		if r["status"] == "ok" {
			c.turns = append(c.turns, at)
		}
		at = link(r["resumes"])
	}
	slices.Reverse(c.turns)
	return c
}

// expression is the one kind that the prompts of the goldens' roles hold.
var expression = regexp.MustCompile(`\$\{\{ *inputs\.(\w+) *\}\}`)

func (p *published) prompt(role record) string {
	text, _ := role["prompt"].(string)
	inputs, _ := members(p.text(p.start(p.at.record)["inputs"]))
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		for _, m := range inputs {
			if m.name == expression.FindStringSubmatch(e)[1] {
				return plainly(m.value)
			}
		}
		p.t.Fatalf("no value for %s", e)
		return ""
	})
}

// plainly is a JSON string as it is, and any other value as JSON.
func plainly(value string) string {
	var s string
	if json.Unmarshal([]byte(value), &s) == nil && value[0] == '"' {
		return s
	}
	return value
}

func (p *published) messages(tools string) (out [][2]string) {
	role := p.role(p.at.record)
	schema, _ := role["output"].(string)
	c := p.conversation()
	var offered []struct{ Name string }
	if err := json.Unmarshal([]byte(tools), &offered); err != nil {
		p.t.Fatal(err)
	}
	known := map[string]bool{}
	if c.covers != "" {
		p.walk(p.record(c.covers), known)
		known[c.covers] = true
	}
	for _, tool := range offered {
		if tool.Name == "task_complete" {
			return p.task(role, schema, c, known)
		}
	}
	text := ""
	if schema != "" {
		text = strings.Replace(p.frontmatter, "{{schema}}", schema, 1)
	}
	if system := parts(p.prompt(role), text); system != "" {
		out = append(out, [2]string{"system", system})
	}
	summary, inputs := c.summary, c.covers == ""
	for _, turn := range c.turns {
		r := p.record(turn)
		out = append(out, [2]string{"user", p.user(r, known, summary, inputs)})
		known[turn] = true
		summary, inputs = "", false
		said := p.text(r["output"])
		if strings.TrimSpace(said) == "" {
			said = "(no text)"
		}
		out = append(out, [2]string{"assistant", said})
	}
	return append(out, [2]string{"user", p.user(p.at.record, known, summary, inputs)})
}

// user is 5.4.
func (p *published) user(r record, known map[string]bool, summary string, withInputs bool) string {
	inputs := ""
	if withInputs {
		inputs = p.inputs(r)
	}
	text := parts(summary, p.text(r["edgePrompt"]), inputs, p.since(r, p.walk(r, known)), p.text(r["inject"]))
	if text == "" {
		return "(continue)"
	}
	return text
}

// holds reports whether mentions hold a path, or what goes on from there.
func holds(mentions []string, path string) bool {
	return slices.ContainsFunc(mentions, func(m string) bool {
		return m == path || strings.HasPrefix(m, path+".") || strings.HasPrefix(m, path+"[")
	})
}

func (p *published) inputs(r record) string {
	mentions := p.mentions(r)
	if slices.Contains(mentions, "inputs") {
		return ""
	}
	text := fieldsOf(p.text(p.start(p.at.record)["inputs"]), func(m member) bool { return holds(mentions, "inputs."+m.name) })
	if text == "" {
		return ""
	}
	return "## Inputs\n\n" + text
}

// walk gives the steps above a visit that are not known, each after its parents.
func (p *published) walk(r record, known map[string]bool) (steps []string) {
	parents, _ := r["parents"].([]any)
	for _, l := range parents {
		cid := link(l)
		if known[cid] {
			continue
		}
		if up := p.record(cid); up["kind"] == "step" {
			known[cid] = true
			steps = append(append(steps, p.walk(up, known)...), cid)
		}
	}
	return steps
}

func (p *published) direct(visit record, step string) bool {
	parents, _ := visit["parents"].([]any)
	return slices.ContainsFunc(parents, func(l any) bool { return link(l) == step })
}

func (p *published) mentioned(visit record, step string) bool {
	m, role := p.mentions(visit), p.record(step)["role"].(string)
	return slices.Contains(m, "outputs") || slices.Contains(m, "steps") || holds(m, "output") || holds(m, "outputs."+role) || holds(m, "steps."+role)
}

func (p *published) since(visit record, steps []string) string {
	if p.format == 2 { // 5.6
		steps = slices.DeleteFunc(slices.Clone(steps), func(s string) bool {
			told := p.direct(visit, s) && p.mentioned(visit, s)
			return p.record(s)["status"] == "ok" && (told || p.body(s) == "")
		})
	}
	if len(steps) == 0 {
		return ""
	}
	whole := 0
	for _, s := range steps {
		if p.direct(visit, s) && !p.mentioned(visit, s) {
			whole++
		}
	}
	share := 24_000
	if whole > 0 {
		share = min(24_000, max(1_200, 96_000/whole))
	}
	var out []string
	left, dropped, newest := 8_000, 0, ""
	for _, s := range slices.Backward(steps) {
		r := p.record(s)
		name := fmt.Sprintf("### %v#%v", r["role"], r["visit"])
		if item, ok := r["item"].(record); ok {
			name += fmt.Sprintf("[%v]", item["index"])
		}
		name += fmt.Sprintf(" · %v", r["status"])
		body := ""
		switch {
		case p.direct(visit, s) && p.mentioned(visit, s):
		case p.direct(visit, s):
			body = cutTo(p.body(s), share, s)
		default:
			body = cutTo(p.body(s), 1_200, s)
			if left -= utf8.RuneCountInString(body); dropped > 0 || left < 0 {
				if dropped++; dropped == 1 {
					newest = s
				}
				continue
			}
		}
		if body != "" {
			name += "\n" + body
		}
		out = append(out, name)
	}
	if dropped > 0 {
		out = append(out, more(dropped, newest))
	}
	heading := "## What happened since"
	if link(visit["resumes"]) == "" {
		heading = "## What happened so far"
	}
	out = append(out, heading)
	slices.Reverse(out)
	return parts(out...)
}

func (p *published) body(step string) string {
	r := p.record(step)
	failure := ""
	if info := p.text(r["error"]); info != "" {
		var e struct{ Phase, Message string }
		if err := json.Unmarshal([]byte(info), &e); err != nil {
			p.t.Fatal(err)
		}
		failure = "error: " + strings.TrimSpace(e.Phase+": "+e.Message)
	}
	text, data := p.text(r["output"]), p.text(r["data"])
	all, _ := members(data)
	for _, m := range all {
		if !slices.Contains([]string{"exit_code", "choice", "text", "body"}, m.name) {
			text = behindFrontmatter(text)
			break
		}
	}
	fields := fieldsOf(data, func(m member) bool {
		return (m.name == "text" || m.name == "body") && m.value[0] == '"' && strings.TrimSpace(plainly(m.value)) == strings.TrimSpace(text)
	})
	return parts(failure, fields, text)
}

func behindFrontmatter(output string) string {
	lines := strings.Split(strings.TrimLeft(strings.TrimPrefix(output, "\ufeff"), " \t\n"), "\n")
	if len(lines) < 2 || lines[0] != "---" {
		return output
	}
	for i, line := range lines[1:] {
		if line == "---" {
			return strings.Join(lines[i+2:], "\n")
		}
	}
	return output
}

func fieldsOf(object string, without func(member) bool) string {
	all, ok := members(object)
	if !ok {
		return strings.TrimSpace(object)
	}
	var lines []string
	for _, m := range all {
		switch text := plainly(m.value); {
		case without(m):
		case m.value[0] == '"' && strings.Contains(text, "\n"):
			lines = append(lines, m.name+": |")
			for _, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
				lines = append(lines, "  "+line)
			}
		default:
			lines = append(lines, m.name+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}

// task is 5.5.
func (p *published) task(role record, schema string, c conversation, known map[string]bool) (out [][2]string) {
	if schema != "" {
		schema = strings.Replace(p.taskOutput, "{{schema}}", schema, 1)
	}
	if system := parts(p.prompt(role), p.tasks, schema); system != "" {
		out = append(out, [2]string{"system", system})
	}
	var earlier []string
	shared := map[string]string{}
	for _, turn := range c.turns {
		r := p.record(turn)
		p.walk(r, known)
		known[turn] = true
		all, _ := members(p.text(r["data"]))
		for _, m := range all {
			if own, ok := members(m.value); ok && m.name == "task" {
				all = own
			}
		}
		of := map[string]string{}
		for _, m := range all {
			of[m.name] = m.value
		}
		if summary := plainly(of["summary"]); summary != "" {
			earlier = append(earlier, "### "+plainly(of["goal"])+"\n\n"+cutTo(summary, 8_000, turn))
		}
		values, _ := members(of["shared"])
		for _, m := range values {
			shared[m.name] = m.value
		}
	}
	most := 3
	if spec, ok := role["task"].(record); ok && spec["summaries"] != nil {
		most = int(integer(spec["summaries"]))
	}
	if earlier = earlier[max(0, len(earlier)-most):]; len(earlier) > 0 {
		earlier = append([]string{"## Earlier tasks"}, earlier...)
	}
	inputs := ""
	if len(c.turns) == 0 && c.covers == "" {
		inputs = p.inputs(p.at.record)
	}
	steps := p.walk(p.at.record, known)
	since := p.since(p.at.record, steps)
	if p.format == 1 && !slices.ContainsFunc(steps, func(s string) bool { return !p.direct(p.at.record, s) || !p.mentioned(p.at.record, s) }) {
		since = ""
	}
	message := parts(p.text(p.at.record["edgePrompt"]), inputs, since)
	if message == "" {
		message = "(continue)"
	}
	block := ""
	if p.at.goal != "" {
		block = "<task>\nGoal: " + p.at.goal + "\nState: (nothing saved yet)\n</task>"
	}
	return append(out, [2]string{"user", parts(p.text(p.at.record["inject"]), parts(earlier...), sharedValues(shared), "## Message\n\n"+message, block)})
}

func sharedValues(shared map[string]string) string {
	var names []string
	for name, value := range shared {
		if value != "null" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	sort.Strings(names)
	var lines []string
	left := 8_000
	for i, name := range names {
		if left -= utf8.RuneCountInString(name) + utf8.RuneCountInString(shared[name]); left < 0 {
			lines = append(lines, fmt.Sprintf("…[%d more]", len(names)-i))
			break
		}
		line := fieldsOf(`{`+escaped(name)+`:`+shared[name]+`}`, func(member) bool { return false })
		lines = append(lines, line)
	}
	return "## Shared values\n\n" + strings.Join(lines, "\n")
}
