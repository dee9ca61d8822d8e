package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"wf/engine/lint"
	"wf/engine/yaml"
	"wf/protocol"
)

// actions in the order of the language; a role has exactly one.
var actions = []protocol.Action{protocol.ActPrompt, protocol.ActRun, protocol.ActAsk, protocol.ActWorkflow, protocol.ActWait, protocol.ActSet, protocol.ActMerge}

// works are the actions of roles, since what a key says has an effect there; a key that is not
// here has one beside every action.
var works = sync.OnceValue(func() map[string][]protocol.Action {
	acts := []protocol.Action{protocol.ActPrompt, protocol.ActRun}
	m := map[string][]protocol.Action{
		"choices": {protocol.ActAsk}, "form": {protocol.ActAsk}, "with": {protocol.ActWorkflow}, "once": {protocol.ActRun}, "cache": {protocol.ActRun, protocol.ActPrompt}, "stdin": {protocol.ActRun},
		"env": acts, "dir": acts, "output": acts, "artifacts": acts, "needs": acts, "sandbox": acts, "network": acts,
		"concurrency": append(acts, protocol.ActWorkflow),
		"timeout":     append(acts, protocol.ActWorkflow, protocol.ActAsk), "retry": append(acts, protocol.ActWorkflow, protocol.ActAsk),
		"workspace":  append(acts, protocol.ActWorkflow),
		"on_timeout": {protocol.ActAsk}, "remind": {protocol.ActAsk}, "assignees": {protocol.ActAsk},
	}
	for _, k := range grammar().agentKeys {
		m[k.name] = acts[:1]
	}
	return m
})

// effective reports whether a key has an effect beside an action.
func effective(key string, a protocol.Action) bool {
	only, ok := works()[key]
	return !ok || slices.Contains(only, a)
}

// instead says what to write in place of a key that has no effect beside an action.
func instead(key string, a protocol.Action) string {
	switch {
	case key == "timeout" && a == protocol.ActWait:
		return "remove it: how long it waits is said by  wait: {for: 10m}"
	case (key == "retry" || key == "timeout") && a == protocol.ActMerge:
		return "remove it: what can be merged is, and the rest is in output.conflicts"
	case key == "retry" && (a == protocol.ActWait || a == protocol.ActSet):
		return fmt.Sprintf("remove it: %s fails only by an expression, which fails every time", a)
	case key == "output" && a == protocol.ActAsk:
		return "use form: it describes the fields that a person fills in"
	case key == "output" && a == protocol.ActWorkflow:
		return "remove it: the file of the sub-workflow declares its outputs"
	case (key == "env" || key == "dir") && a == protocol.ActWorkflow:
		return "set it on the roles of the sub-workflow; values reach them by with"
	}
	var names []string
	for _, only := range works()[key] {
		names = append(names, string(only))
	}
	last := len(names) - 1
	if last > 0 {
		names = []string{strings.Join(names[:last], ", "), names[last]}
	}
	return "remove it; it belongs to roles with " + strings.Join(names, " or ")
}

// tasked are agent keys that workflow roles have too: each visit is then a task that the
// sub-workflow carries out.
var tasked = map[string]bool{"context": true, "task": true}

// inherits reports whether defaults.<key> reaches roles of an action. What bounds the work of a
// role does not bound a sub-workflow, whose roles have bounds of their own, nor people, who are given the time
// that the question itself says.
func inherits(key string, a protocol.Action) bool {
	bounds := key == "timeout" || key == "retry"
	return effective(key, a) && !(bounds && (a == protocol.ActWorkflow || a == protocol.ActAsk))
}

func (l *loader) decodeRoles(n, defaults *yaml.Node) {
	if n == nil || n.Kind != yaml.Mapping || l.bad[n] {
		return
	}
	if defaults != nil && (defaults.Kind != yaml.Mapping || l.bad[defaults]) {
		defaults = nil
	}
	for _, p := range n.Pairs {
		name := p.Key.Value
		l.roleOrder = append(l.roleOrder, name)
		l.roleNodes[name], l.roleKeys[name] = p.Value, p.Key
		if lint.Reserved(name) {
			l.report(p.Key, Diagnostic{Code: "WF018", Message: fmt.Sprintf("%s is a reserved name", name), Hint: "give the role another name"})
		}
		r := protocol.Role{Name: name}
		if p.Value.Kind == yaml.Mapping {
			l.decodeRole(&r, p.Key, p.Value, defaults)
		}
		l.w.Roles = append(l.w.Roles, r)
	}
	slices.SortFunc(l.w.Roles, func(a, b protocol.Role) int { return cmp.Compare(a.Name, b.Name) })
}

func (l *loader) decodeRole(r *protocol.Role, key, n, defaults *yaml.Node) {
	r.Action = l.action(r.Name, key, n)
	get := func(k string) *yaml.Node {
		if v := n.Get(k); v != nil {
			return v
		}
		if defaults != nil && inherits(k, r.Action) {
			return defaults.Get(k)
		}
		return nil
	}
	r.Prompt, r.Ask = trimEnd(l.str(n.Get("prompt"))), trimEnd(l.str(n.Get("ask")))
	r.Run = trimEnd(l.str(n.Get("run")))
	r.With, r.Set = l.named(n.Get("with")), l.named(n.Get("set"))
	r.Stdin = l.stdin(r.Name, n.Get("stdin"))
	r.Wait = l.wait(r.Name, n.Get("wait"))
	r.Choices = l.choices(r.Name, n.Get("choices"))
	if c := n.Get("choices"); l.good(c) && c.Kind == yaml.Scalar {
		r.ChoicesOf = unwrap(strings.TrimSpace(l.str(c)))
	}
	r.Form = l.schema(n.Get("form"), "roles."+r.Name+".form")
	l.unrendered(n.Get("form"), "roles."+r.Name+".form")
	r.Output = l.schema(n.Get("output"), "roles."+r.Name+".output")

	r.Env = l.env(n.Get("env"), nil)
	if defaults != nil && inherits("env", r.Action) {
		r.Env = l.env(defaults.Get("env"), r.Env)
	}
	r.Dir = strings.TrimSpace(l.str(get("dir")))
	r.Model = l.models(get("model"))
	r.Params, r.ParamsTexts = l.params(get("params"))
	r.MaxTurns = l.integer(get("max_turns"))
	if n := get("patience"); l.good(n) {
		r.Patience = new(l.duration(n)) // of 0 it is none
	}
	if c := protocol.ContextMode(l.str(get("context"))); c != protocol.ContextConversation {
		r.Context = c
	}
	r.Task = l.taskSpec(get("task"), get("task_summaries"))
	r.Dynamic = l.words(get("dynamic"))
	if c := get("compaction"); l.good(c) && c.Kind == yaml.Mapping {
		r.Compaction = &protocol.CompactionSpec{Watermark: int64(l.integer(c.Get("watermark"))), Keep: l.integer(c.Get("keep")), Model: l.model(c.Get("model"))}
	}
	r.Memory = l.memory(r.Name, get("memory"))
	l.tools(r, get("tools"))
	r.Sandbox = l.str(get("sandbox"))
	r.Network, r.NetworkHosts = l.network(get("network"))
	if r.Action == protocol.ActPrompt && r.Sandbox == protocol.SandboxOn {
		r.Sandbox = "" // as it is by itself
	}
	r.Retry = l.retry(get("retry"))
	if r.Action == protocol.ActAsk {
		r.Asking = l.asking(r, n)
	} else {
		r.Timeout = l.duration(get("timeout"))
	}
	r.MaxVisits = l.integer(get("max_visits"))
	r.RouteAll = l.str(get("route")) == "all"
	r.ContinueOnError = l.yes(get("continue_on_error"))
	r.Once = l.yes(get("once"))
	r.Needs = slices.Compact(slices.Sorted(slices.Values(l.words(get("needs")))))
	r.Concurrency = l.concurrency(n.Get("concurrency"))
	r.Artifacts = l.artifacts(r.Name, n.Get("artifacts"))
	r.Workspace = l.ownWorkspace(r.Name, n.Get("workspace"))
	if m := n.Get("merge"); l.good(m) && m.Kind == yaml.Mapping {
		r.Merge = &protocol.Merge{Of: l.str(m.Get("of"))}
	}
	r.Caching = l.caching(r.Name, r.Action, n.Get("cache"))
}

// network is a word and endpoints, sorted. The word packages may be one of the list.
func (l *loader) network(n *yaml.Node) (word string, hosts []string) {
	if !l.good(n) || n.Kind != yaml.Sequence {
		return l.str(n), nil
	}
	for _, item := range n.Items {
		text := l.str(item)
		if text == "" {
			continue // reported
		}
		if text == protocol.NetworkPackages {
			word = text
			continue
		}
		e, err := protocol.ParseEndpoint(text)
		if err != nil {
			l.wrong(item, "network: "+err.Error(), "such as api.example.com:443")
			continue
		}
		hosts = append(hosts, e.String())
	}
	slices.Sort(hosts)
	return word, slices.Compact(hosts)
}

// memory is nil for a role without one. What is said of it by default is not written down.
func (l *loader) memory(role string, n *yaml.Node) *protocol.MemorySpec {
	if !l.good(n) || n.Kind == yaml.Scalar && !l.yes(n) {
		return nil
	}
	m := &protocol.MemorySpec{}
	if n.Kind != yaml.Mapping {
		return m
	}
	if m.Scope = l.str(n.Get("scope")); m.Scope == protocol.MemoryRole {
		m.Scope = ""
	}
	if recall := n.Get("recall"); recall != nil {
		m.NoRecall = l.good(recall) && !l.yes(recall)
	}
	m.TopK, m.Embed = l.integer(n.Get("top_k")), l.str(n.Get("embed"))
	if d := n.Get("distance"); l.good(d) {
		m.Distance, _ = parseDecimal(l.str(d))
		if f, err := strconv.ParseFloat(m.Distance, 64); err != nil || f <= 0 || f > 2 {
			l.wrong(d, fmt.Sprintf("roles.%s.memory.distance wants a number above 0, up to 2, got %q", role, l.str(d)), "0 is the same text, 1 an unrelated one")
		}
	}
	return m
}

// action finds what the role does (WF004) and keys that its action has no use for.
func (l *loader) action(name string, key, n *yaml.Node) protocol.Action {
	var have []protocol.Action
	for _, a := range actions {
		if hasKey(n, string(a)) {
			have = append(have, a)
		}
	}
	switch {
	case len(have) == 0:
		l.wrongAt(key, "WF004", fmt.Sprintf("role %q has no action", name), "give it one of prompt, run, ask, workflow, wait, set, merge")
		return ""
	case len(have) > 1:
		for _, p := range n.Pairs {
			if p.Key.Value == string(have[1]) {
				l.wrongAt(p.Key, "WF004", fmt.Sprintf("role %q has two actions: %s and %s", name, have[0], have[1]), "split it into two roles")
			}
		}
		return have[0]
	}
	for _, p := range n.Pairs {
		if tasked[p.Key.Value] && have[0] == protocol.ActWorkflow {
			if c := l.str(n.Get("context")); c != string(protocol.ContextTask) && !l.bad[n.Get("context")] {
				l.wrongAt(p.Key, "WF002", fmt.Sprintf("roles.%s: of the contexts only task means something beside workflow", name), "write  context: task, or remove it")
			}
			continue
		}
		if !effective(p.Key.Value, have[0]) {
			l.wrongAt(p.Key, "WF002", fmt.Sprintf("roles.%s: %s means nothing beside %s", name, p.Key.Value, have[0]), instead(p.Key.Value, have[0]))
		}
	}
	return have[0]
}

// stdin is nil for a command that reads its turn.
func (l *loader) stdin(role string, n *yaml.Node) *protocol.Stdin {
	if !l.good(n) {
		return nil
	}
	if n.Kind == yaml.Scalar {
		return &protocol.Stdin{Text: n.Value}
	}
	file := n.Get("file")
	if !l.good(file) {
		return nil
	}
	if path := strings.TrimSpace(file.Value); !hasExpr(path) && (path == "" || strings.HasPrefix(path, "/") || strings.HasPrefix(path, "~")) {
		l.wrong(file, fmt.Sprintf("roles.%s.stdin.file wants a path in the workspace, got %q", role, file.Value), "relative to the directory in which the command works")
	}
	return &protocol.Stdin{File: strings.TrimSpace(file.Value)}
}

func (l *loader) wait(role string, n *yaml.Node) *protocol.Wait {
	if !l.good(n) {
		return nil
	}
	w := &protocol.Wait{}
	at := n
	if n.Kind == yaml.Scalar {
		w.For = n.Value
	} else {
		*w = protocol.Wait{For: l.str(n.Get("for")), Until: l.str(n.Get("until")), Signal: l.str(n.Get("signal"))}
		at = n.Get("for")
		set := 0
		for _, k := range []string{"for", "until", "signal"} {
			if hasKey(n, k) {
				set++
			}
		}
		if set != 1 {
			l.wrongAt(n, "WF002", fmt.Sprintf("roles.%s.wait wants exactly one of for, until and signal", role), "")
		}
	}
	if w.For != "" && !hasExpr(w.For) {
		if _, ok := parseDuration(w.For); !ok {
			l.wrong(at, fmt.Sprintf("roles.%s.wait wants a duration such as 90s, 10m or 1h30m, got %q", role, w.For), tooLong(w.For))
		}
	}
	if w.Until != "" && !hasExpr(w.Until) && !isTime(w.Until) {
		l.wrong(n.Get("until"), fmt.Sprintf("roles.%s.wait.until wants a time such as 2026-01-31T09:00:00Z, got %q", role, w.Until), "RFC 3339, with a zone, in the years 1970 to 2255")
	}
	return w
}

func (l *loader) choices(role string, n *yaml.Node) []protocol.Choice {
	if !l.good(n) || n.Kind != yaml.Sequence {
		return nil
	}
	var out []protocol.Choice
	for _, it := range n.Items {
		c := protocol.Choice{Label: l.str(it), Value: l.str(it)}
		at := it
		if it.Kind == yaml.Mapping {
			c = protocol.Choice{Label: l.str(it.Get("label")), Value: l.str(it.Get("value")), Primary: l.yes(it.Get("primary"))}
			if v := it.Get("value"); v != nil {
				at = v
			}
		}
		c.Value, c.Label = cmp.Or(c.Value, c.Label), cmp.Or(c.Label, c.Value)
		switch {
		case l.bad[it]:
			continue
		case c.Value == "":
			l.report(it, Diagnostic{Code: "WF032", Message: fmt.Sprintf("a choice of roles.%s has neither label nor value", role), Hint: "write {label: Try again, value: retry}"})
			continue
		case slices.ContainsFunc(out, func(o protocol.Choice) bool { return o.Value == c.Value }):
			l.report(at, Diagnostic{Code: "WF032", Message: fmt.Sprintf("two choices of roles.%s have the value %q", role, c.Value), Hint: "give each its own"})
		case c.Primary && slices.ContainsFunc(out, func(o protocol.Choice) bool { return o.Primary }):
			l.wrongAt(it, "WF032", fmt.Sprintf("two choices of roles.%s are primary", role), "only one can be")
		}
		out = append(out, c)
	}
	return out
}

// taskSpec is nil for what is all default.
func (l *loader) taskSpec(n, summaries *yaml.Node) *protocol.TaskSpec {
	var spec protocol.TaskSpec
	if l.good(n) && n.Kind == yaml.Mapping {
		spec = protocol.TaskSpec{Words: l.integer(n.Get("words")), Model: l.model(n.Get("model"))}
		if s := protocol.TaskSummary(l.str(n.Get("summary"))); s != protocol.SummaryByAgent {
			spec.Summary = s
		}
		if own := n.Get("summaries"); own != nil {
			summaries = own
		}
	}
	if l.good(summaries) {
		if count := l.integer(summaries); count != protocol.DefaultTaskSummaries {
			spec.Summaries = &count
		}
	}
	if spec.Words == protocol.DefaultTaskWords {
		spec.Words = 0
	}
	if spec == (protocol.TaskSpec{}) {
		return nil
	}
	return &spec
}

// env reads variables as templates; base, which is sorted, wins.
func (l *loader) env(n *yaml.Node, base []protocol.NamedTemplate) []protocol.NamedTemplate {
	out := base
	for _, p := range l.pairs(n) {
		if p.Value.Kind != yaml.Scalar || slices.ContainsFunc(base, func(b protocol.NamedTemplate) bool { return b.Name == p.Key.Value }) {
			continue
		}
		if !wordName().MatchString(p.Key.Value) {
			l.wrongAt(p.Key, "WF002", fmt.Sprintf("%q is no name for a variable", p.Key.Value), "letters, digits and _")
			l.bad[p.Key] = true
			continue
		}
		out = append(out, protocol.NamedTemplate{Name: p.Key.Value, Value: p.Value.Value})
	}
	slices.SortFunc(out, func(a, b protocol.NamedTemplate) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// retryRules refuses a factor that would have no effect.
func (l *loader) retryRules(r *protocol.Retry, n *yaml.Node) {
	if f, err := strconv.ParseFloat(r.Factor, 64); err == nil && f < 1 {
		l.wrong(n.Get("factor"), fmt.Sprintf("retry.factor is %s; it must be at least 1", r.Factor), "1 keeps every pause at delay")
	}
}

// retry is nil for a single attempt, which is what a role without retry has.
func (l *loader) retry(n *yaml.Node) *protocol.Retry {
	if !l.good(n) {
		return nil
	}
	r := &protocol.Retry{Attempts: l.integer(n)}
	if n.Kind == yaml.Mapping {
		factor, _ := parseDecimal(l.str(n.Get("factor")))
		r = &protocol.Retry{Attempts: l.integer(n.Get("attempts")), Delay: l.duration(n.Get("delay")), Factor: factor,
			MaxDelay: l.duration(n.Get("max_delay")), On: l.words(n.Get("on")), Anew: l.yes(n.Get("anew"))}
		l.retryRules(r, n)
		slices.Sort(r.On)
		r.On = slices.Compact(r.On)
		if slices.Contains(r.On, "any") {
			r.On = nil
		}
	}
	if r.Attempts <= 1 {
		return nil
	}
	return r
}
