package lang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"wf/engine/lint"
	"wf/engine/yaml"
	"wf/protocol"
	"wf/protocol/lazy"
)

// cacheShape is what a role says of reusing results.
func cacheShape() *shape {
	const run = "run: make dist\n"
	return either(yesNo, object([]key{
		{name: "inputs", shape: &shape{kind: aList, elem: str}, unset: "a command must say it; an agent cannot", doc: "Files of the workspace that the command sees, as globs: no others are there, and these cannot be written. An empty list is none.", example: run + "cache: {inputs: [src/**, Makefile], outputs: [dist/**]}", field: "roles[].caching.inputs"},
		{name: "outputs", shape: listOf(str), unset: "none", doc: "Files of the workspace that the command makes or changes, as globs. A result with a change of any other file is used and not kept.", example: run + "cache: {inputs: [src/**, Makefile], outputs: [dist/**]}", field: "roles[].caching.outputs"},
		{name: "env", shape: listOf(matching(wordName, "the name of a variable")), unset: "none", doc: "Variables of the environment of wf that the command gets, and that results follow from. What is written under env of the role counts by itself.", example: run + "cache: {inputs: [src/**], env: [CC, CFLAGS]}", field: "roles[].caching.env"},
		{name: "toolchain", shape: listOf(text), unset: "none", doc: "Commands that say which tools there are: results follow from what they write. They run in an empty directory, confined, before each visit.", example: run + "cache: {inputs: [src/**], outputs: [dist/**], toolchain: [go version]}", field: "roles[].caching.toolchain"},
		{name: "scope", shape: enum(protocol.CacheStore, protocol.CacheWorkflow), def: protocol.CacheStore, doc: "Runs that share results: all of the store, or those of workflows of the same name.", example: run + "cache: {inputs: [src/**], scope: workflow}", field: "roles[].caching.scope"},
		{name: "for", shape: matching(lifetime, "a duration such as 12h, or days such as 7d"), unset: "as long as the store keeps it", doc: "How long a result is reused, counted from when it was stored.", example: run + "cache: {inputs: [src/**], for: 7d}", field: "roles[].caching.for"},
	}, ""))
}

// caching reads whether results of a role are reused; nil where they are not.
func (l *loader) caching(role string, action protocol.Action, n *yaml.Node) *protocol.Caching {
	if !l.good(n) || n.Kind == yaml.Scalar && !l.yes(n) {
		return nil
	}
	if n.Kind != yaml.Mapping {
		return &protocol.Caching{Whole: true}
	}
	path := "roles." + role + ".cache"
	if action == protocol.ActPrompt {
		for _, p := range n.Pairs {
			if slices.Contains([]string{"inputs", "outputs", "env", "toolchain"}, p.Key.Value) {
				l.wrongAt(p.Key, "WF002", fmt.Sprintf("%s.%s means nothing beside prompt", path, p.Key.Value), "remove it: an agent sees all files that its tools reach, and they are in the key")
			}
		}
	} else if !hasKey(n, "inputs") {
		l.wrongAt(n, "WF002", fmt.Sprintf("%s lacks the key %q", path, "inputs"), "add inputs: […], or write  cache: true")
	}
	c := &protocol.Caching{
		Inputs: l.globs("roles."+role+".cache.inputs", n.Get("inputs")), Outputs: l.globs("roles."+role+".cache.outputs", n.Get("outputs")),
		Env: l.words(n.Get("env")), Toolchain: l.words(n.Get("toolchain")), For: lifetimeOf(l.str(n.Get("for"))),
	}
	slices.Sort(c.Env)
	c.Env = slices.Compact(c.Env)
	if c.Scope = l.str(n.Get("scope")); c.Scope == protocol.CacheStore {
		c.Scope = ""
	}
	if action == protocol.ActPrompt {
		return &protocol.Caching{Whole: true, Scope: c.Scope, For: c.For}
	}
	return c
}

var lifetime = lazy.Regexp(`^([1-9][0-9]{0,3}d|([0-9]+(\.[0-9]+)?(h|m|s))+)$`)

// lifetimeOf is a duration, or a number of days, in µs.
func lifetimeOf(text string) int64 {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, _ := strconv.ParseInt(days, 10, 64) // 0 for what was reported
		return n * (24 * time.Hour).Microseconds()
	}
	us, _ := parseDuration(text)
	return us
}

// cacheRules says why results of a role cannot be reused (WF039).
func (l *loader) cacheRules(r *protocol.Role, n *yaml.Node) {
	if r.Caching == nil || !l.good(n) {
		return
	}
	cannot := func(why, hint string) {
		l.report(n, Diagnostic{Code: "WF039", Message: fmt.Sprintf("results of role %q cannot be reused: %s", r.Name, why), Hint: hint})
	}
	if r.Action == protocol.ActPrompt {
		l.agentCacheRules(r, cannot)
	}
	if r.Network != "" || len(r.NetworkHosts) > 0 {
		cannot("it reads the network, which no key can tell", "remove cache or network")
	}
	if r.Once {
		cannot("once says that it acts beyond its files", "remove cache or once")
	}
	if !r.Caching.Whole && r.Sandbox == protocol.SandboxOff {
		cannot("without a sandbox it sees more than its inputs", "remove sandbox: off, or write  cache: true")
	}
	if r.Artifacts != nil && len(r.Artifacts.From) > 0 {
		cannot("it is given artifacts, which are no inputs", "remove cache or artifacts.from")
	}
	if r.Workspace != nil {
		cannot("what it leaves in a copy of its own is for a merge alone", "remove cache or workspace")
	}
	if slices.Contains(l.w.Always, r.Name) {
		cannot("an always role acts each time that a run ends", "remove cache")
	}
	for _, e := range r.Env {
		if l.readsSecret(e.Value + e.JSON) {
			cannot(fmt.Sprintf("env.%s is a secret", e.Name), "remove cache, or have a role of its own work with the secret")
		}
	}
	for _, name := range r.Caching.Env {
		if slices.Contains(l.w.Secrets, name) {
			cannot(fmt.Sprintf("cache.env names the secret %s", name), "remove it: secrets are in no key")
		}
	}
	for _, c := range r.Caching.Toolchain {
		if strings.Contains(c, lint.OpenMark) {
			cannot("an expression in cache.toolchain would be read by the shell as code", "write a command without expressions")
		}
	}
	for i := range l.w.Edges {
		e := &l.w.Edges[i]
		if !r.Caching.Whole || e.ForEach == "" || !slices.Contains(e.To, r.Name) {
			continue
		}
		switch {
		case r.Action != protocol.ActPrompt:
			cannot("its visits for the items overlap in the workspace, so that none tells what it changed", "say what it reads and writes: cache: {inputs: […], outputs: […]}; each visit then has files of its own")
		case slices.Contains(r.Tools, "edit_file") || slices.Contains(r.Tools, "write_file"):
			cannot("its visits for the items overlap in the workspace, so that none tells what it changed", "remove cache, or have a role with a loop change the files one after the other")
		}
	}
}

// agentCacheRules are those of agents: their results follow from what they are sent, their model and files alone.
func (l *loader) agentCacheRules(r *protocol.Role, cannot func(why, hint string)) {
	for _, t := range r.Tools {
		switch {
		case t == "shell":
			cannot("its tool shell runs commands, and no key can tell what they find", "remove cache or shell; a command in a role of its own can have cache")
		case strings.HasPrefix(t, "mcp:"):
			cannot(fmt.Sprintf("what its tool %s answers no key can tell", t), "remove cache or the tool")
		}
	}
	if t := mayAsk(r); t != "" && t != "shell" && !strings.HasPrefix(t, "mcp:") {
		cannot(fmt.Sprintf("a person is asked for calls of %s", t), fmt.Sprintf("remove cache, or write  {%s: auto}", t))
	}
	if r.Memory != nil {
		cannot("it has a memory, which no key can tell", "remove cache or memory")
	}
	if r.Context == protocol.ContextTask {
		cannot("it works on tasks, whose steps are no part of its answer", "remove cache or context: task")
	}
}

// readsSecret reports whether a template refers to a secret.
func (l *loader) readsSecret(template string) bool {
	return slices.ContainsFunc(l.w.Secrets, func(name string) bool {
		return strings.Contains(template, "secrets."+name) || strings.Contains(template, `secrets["`+name) || strings.Contains(template, "secrets['"+name)
	})
}
