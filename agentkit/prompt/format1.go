package prompt

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"wf/protocol"
)

// Caps of format 1, in runes. A direct parent is quoted in full: up to parentMax, and where many
// join, up to an equal share of parentsMax, but never less than any other step.
const (
	parentMax  = 24_000
	parentsMax = 96_000
	otherMax   = 1_200 // each of the other steps
	othersMax  = 8_000 // all of them; the oldest are dropped first
)

//go:embed format1.md
var outputV1 string

func systemV1(h *protocol.History) string {
	output := ""
	if h.Schema != "" {
		output = strings.Replace(outputV1, "{{schema}}", h.Schema, 1)
	}
	return Join(h.System, output)
}

func userV1(u *userParts) string {
	return cmp.Or(Join(u.summary, u.visit.EdgePrompt, inputsV1(u.inputs, u.visit.Mentions), sinceV1(u), u.visit.Inject), "(continue)")
}

// inputsV1 lists the inputs that the edge prompt does not already tell.
func inputsV1(inputs protocol.JSON, mentions []string) string {
	if len(inputs) == 0 || slices.Contains(mentions, "inputs") {
		return ""
	}
	text := fieldsV1(inputs, func(name string, _ json.RawMessage) bool {
		return mentionsPath(mentions, "inputs."+name)
	})
	if text == "" {
		return ""
	}
	return "## Inputs\n\n" + text
}

// sinceV1 tells what happened since the visit before.
func sinceV1(u *userParts) string {
	if len(u.since) == 0 && u.older == 0 {
		return ""
	}
	direct := make(map[*protocol.Past]bool, len(u.visit.Parents))
	for _, l := range u.visit.Parents {
		if p, _, ok := u.past.Get(l); ok {
			direct[p] = true
		}
	}
	whole := 0 // direct parents that are quoted in full
	for _, step := range u.since {
		if direct[step] && !mentionedV1(u, step) {
			whole++
		}
	}
	share := max(otherMax, min(parentMax, parentsMax/max(whole, 1)))

	entries := make([]string, len(u.since))
	left, dropped, newest := othersMax, 0, (*protocol.Past)(nil)
	for i := len(u.since) - 1; i >= 0; i-- { // the newest first: the oldest are dropped
		step := u.since[i]
		switch {
		case direct[step] && mentionedV1(u, step):
			entries[i] = headerV1(step)
		case direct[step]:
			entries[i] = joinLines(headerV1(step), cutV1(bodyV1(step), share, step.CID))
		case dropped > 0:
			dropped++
		default:
			body := cutV1(bodyV1(step), otherMax, step.CID)
			if n := utf8.RuneCountInString(body); n > left {
				dropped, newest = 1, step
			} else {
				left -= n
				entries[i] = joinLines(headerV1(step), body)
			}
		}
	}
	parts := []string{"## What happened since"}
	if u.visit.Resumes == (protocol.Link{}) {
		parts[0] = "## What happened so far"
	}
	if dropped += u.older; dropped > 0 {
		parts = append(parts, moreV1(dropped, cmp.Or(newest, u.newest).CID))
	}
	return Join(append(parts, entries...)...)
}

// mentionedV1 reports whether the edge prompt's template already tells of a direct parent.
func mentionedV1(u *userParts, step *protocol.Past) bool {
	m := u.visit.Mentions
	return mentionsPath(m, "output") || slices.Contains(m, "outputs") || slices.Contains(m, "steps") ||
		mentionsPath(m, "outputs."+step.Role) || mentionsPath(m, "steps."+step.Role)
}

// mentionsPath reports whether mentions hold path or something below it.
func mentionsPath(mentions []string, path string) bool {
	return slices.ContainsFunc(mentions, func(m string) bool {
		return m == path || strings.HasPrefix(m, path) && (m[len(path)] == '.' || m[len(path)] == '[')
	})
}

func headerV1(s *protocol.Past) string {
	item := ""
	if s.Item != nil {
		item = fmt.Sprintf("[%d]", *s.Item)
	}
	return fmt.Sprintf("### %s#%d%s · %s", s.Role, s.Visit, item, s.Status)
}

// bodyV1 is the error, the fields and the text of a step. The fields of an agent are the
// frontmatter of its text, which is then left out of the text.
func bodyV1(s *protocol.Past) string {
	failure := ""
	if s.Error != nil {
		failure = "error: " + strings.TrimSpace(s.Error.Error())
	}
	text := s.Text
	if declaredV1(s.Data) {
		text = afterFenceV1(text)
	}
	fields := fieldsV1(s.Data, func(name string, raw json.RawMessage) bool {
		var v string
		return (name == "text" || name == "body") && json.Unmarshal(raw, &v) == nil &&
			strings.TrimSpace(v) == strings.TrimSpace(text)
	})
	return Join(failure, fields, text)
}

// declaredV1 reports whether data holds fields that a role declared, and so wrote in front of
// its text; what commands and people always give is none of these.
func declaredV1(data protocol.JSON) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return false
	}
	for name := range members {
		if name != "exit_code" && name != "choice" && name != "text" && name != "body" {
			return true
		}
	}
	return false
}

// afterFenceV1 is what follows the frontmatter, or all of a text that has none.
func afterFenceV1(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimPrefix(text, "\ufeff"), " \t\n"), "---\n")
	if !ok {
		return text
	}
	if _, body, ok := strings.Cut("\n"+rest, "\n---\n"); ok {
		return body
	}
	if strings.HasSuffix("\n"+rest, "\n---") {
		return ""
	}
	return text
}

// fieldsV1 renders an object one member a line, in the order of its canonical JSON: strings as
// they are, those of several lines indented below their name, everything else as JSON.
func fieldsV1(object protocol.JSON, skip func(name string, raw json.RawMessage) bool) string {
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return strings.TrimSpace(string(object)) // an array: the elements of a fan-out
	}
	for dec.More() {
		name, err := dec.Token()
		var raw json.RawMessage
		if err != nil || dec.Decode(&raw) != nil {
			return string(object)
		}
		if key := name.(string); !skip(key, raw) {
			fieldV1(&b, key, raw)
		}
	}
	return b.String()
}

func fieldV1(b *strings.Builder, name string, raw json.RawMessage) {
	var s string
	switch {
	case raw[0] != '"' || json.Unmarshal(raw, &s) != nil:
		fmt.Fprintf(b, "%s: %s\n", name, raw)
	case strings.Contains(s, "\n"):
		fmt.Fprintf(b, "%s: |\n", name)
		for line := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
			fmt.Fprintf(b, "  %s\n", line)
		}
	default:
		fmt.Fprintf(b, "%s: %s\n", name, s)
	}
}

func cutV1(s string, runes int, cid protocol.Link) string {
	if len(s) <= runes {
		return s
	}
	n := 0
	for at := range s {
		if n == runes {
			return s[:at] + moreV1(utf8.RuneCountInString(s[at:]), cid)
		}
		n++
	}
	return s
}

func moreV1(n int, cid protocol.Link) string { return fmt.Sprintf("…[%d more, %s]", n, cid) }

func joinLines(a, b string) string {
	if b == "" {
		return a
	}
	return a + "\n" + b
}
