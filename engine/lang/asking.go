package lang

import (
	"fmt"
	"slices"
	"strings"

	"wf/engine/yaml"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// The words of on_timeout that are no choice.
const (
	failOnTimeout     = "fail"
	escalateOnTimeout = "escalate"
)

// asking is nil for a question that waits for ever, for an answer of anyone.
func (l *loader) asking(r *protocol.Role, n *yaml.Node) *protocol.Asking {
	a := &protocol.Asking{Timeout: l.duration(n.Get("timeout")), Assignees: sorted(l.words(n.Get("assignees")))}
	path := "roles." + r.Name
	for _, word := range l.words(n.Get("remind")) {
		if after, ok := parseDuration(word); ok {
			a.Remind = append(a.Remind, after)
		}
	}
	slices.Sort(a.Remind)
	a.Remind = slices.Compact(a.Remind)
	if last := len(a.Remind) - 1; last >= 0 && a.Timeout > 0 && a.Remind[last] >= a.Timeout {
		l.wrongAt(n.Get("remind"), "WF002", path+".remind has a time at which the question is over", "remind before its timeout")
	}
	l.onTimeout(r, a, n.Get("on_timeout"))
	if a.Timeout == 0 {
		for _, key := range []string{"on_timeout", "retry"} {
			if v := n.Get(key); l.good(v) {
				l.wrongAt(v, "WF002", fmt.Sprintf("%s: %s means nothing beside ask without timeout", path, key), "a question without timeout waits for ever: add  timeout: 24h")
			}
		}
	}
	if a.Timeout == 0 && len(a.Remind)+len(a.Assignees) == 0 {
		return nil
	}
	return a
}

// onTimeout reads what becomes of a question that was not answered in time: it fails unless something else is said.
func (l *loader) onTimeout(r *protocol.Role, a *protocol.Asking, n *yaml.Node) {
	if !l.good(n) {
		return
	}
	then := n
	if n.Kind == yaml.Mapping {
		then = n.Get("then")
		for _, level := range items(n.Get("escalate")) {
			a.Escalate = append(a.Escalate, sorted(l.words(level)))
		}
		if len(a.Assignees) == 0 {
			l.wrongAt(n, "WF002", fmt.Sprintf("roles.%s escalates to people, and anyone may answer it already", r.Name), "say by assignees which people are asked first, or write  on_timeout: escalate")
		}
		if len(a.Escalate) > protocol.EscalateMax {
			l.wrongAt(n, "WF002", fmt.Sprintf("roles.%s escalates %d times; at most %d", r.Name, len(a.Escalate), protocol.EscalateMax), "ask several people at once: [[anna, ben], carla]")
		}
	}
	if !l.good(then) {
		return
	}
	word := strings.TrimSpace(then.Value)
	chosen := slices.ContainsFunc(r.Choices, func(c protocol.Choice) bool { return c.Value == word })
	switch {
	case chosen && (word == failOnTimeout || word == escalateOnTimeout):
		l.wrongAt(then, "WF002", fmt.Sprintf("roles.%s: %q is a choice and what happens without an answer", r.Name, word), "give the choice another value")
	case word == escalateOnTimeout && then == n:
		a.Escalate = slices.Repeat([][]string{{}}, protocol.EscalateMax)
	case word == failOnTimeout:
	case !chosen && r.ChoicesOf == "":
		l.wrongAt(then, "WF002", fmt.Sprintf("roles.%s: %q is none of its choices, nor %s or %s", r.Name, word, failOnTimeout, escalateOnTimeout), "name the value of a choice")
	case r.Form != "" && len(frontmatter.Validate(protocol.JSON("{}"), r.Form)) > 0:
		l.wrongAt(then, "WF002", fmt.Sprintf("roles.%s cannot choose %q by itself: its form has fields that must be filled in", r.Name, word), "write  on_timeout: fail  and an edge with  on: failure")
	default:
		a.OnTimeout = word
	}
}

// sorted is a list of names in order, each once.
func sorted(names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, strings.TrimSpace(name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
