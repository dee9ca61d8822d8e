package render

import (
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// What was heard word by word is not said again by the event that holds the whole; what was
// missed is.
func TestASpokenScreenSaysEverythingOnce(t *testing.T) {
	delta := func(step, kind, text string) api.Update {
		return api.Update{Step: step, Data: protocol.Delta{Kind: kind, Text: text}}
	}
	event := func(step string, d protocol.Data) api.Update {
		return api.Update{Step: step, Entry: &protocol.Entry{}, Data: d}
	}
	said := func(text string) protocol.TextSaid { return protocol.TextSaid{Content: protocol.NewText(text)} }
	for _, c := range []struct {
		name    string
		notices []api.Update
		want    string
	}{
		{"heard in whole", []api.Update{delta("a#1", "text", "Hello "), delta("a#1", "text", "world."), event("a#1", said("Hello world."))},
			"a#1\nHello world.\n"},
		{"the end was missed", []api.Update{delta("a#1", "text", "Hello "), event("a#1", said("Hello world."))},
			"a#1\nHello world.\n"},
		{"the beginning was missed", []api.Update{delta("a#1", "text", "world."), event("a#1", said("Hello world."))},
			"a#1\nworld.\nHello world.\n"},
		{"nothing was heard", []api.Update{event("a#1", said("Hello\nworld."))},
			"a#1\nHello\nworld.\n"},
		{"two at once", []api.Update{delta("a#1", "text", "one"), delta("b#1", "text", "two"), delta("a#1", "text", " more"), event("b#1", said("two")), event("a#1", said("one more"))},
			"a#1\none\nb#1\ntwo\na#1\n more\n"},
		{"thinking, then text", []api.Update{delta("a#1", "thinking", "hm\nso"), event("a#1", protocol.Thinking{Content: protocol.NewText("hm\nso")}), delta("a#1", "text", "Yes.")},
			"a#1\n[hm]\n[so]\nYes."},
		{"a tool", []api.Update{event("a#1", protocol.ToolCall{Call: "1", Name: "shell", Args: protocol.NewText(`{"command":"ls"}`)}),
			event("a#1", protocol.ToolResult{Call: "1", Content: protocol.NewText(strings.Repeat("line\n", 12))})},
			"→ a#1  shell {\"command\":\"ls\"}\n" + strings.Repeat("  [line]\n", 10) + "  … 2 more lines\n"},
		{"a tool that was heard", []api.Update{event("a#1", protocol.ToolCall{Call: "1", Name: "shell"}), delta("a#1", "stdout", "1\n"), delta("a#1", "stdout", "2\n"),
			event("a#1", protocol.ToolResult{Call: "1", Content: protocol.NewText("exit code: 0\nstdout:\n1\n2")})},
			"→ a#1  shell \n1\n2\n"},
		{"what a tool left", []api.Update{event("a#1", protocol.ToolResult{Call: "1", Appeared: &protocol.Appeared{Found: []protocol.Found{{Kind: protocol.FoundGitLink, Path: "a/"}}}})},
			"  \n! a#1  made a link to a git repository in a/: wf does not act on it; your git may\n"},
		{"control characters", []api.Update{delta("a#1", "stdout", "a\x1b[2Jb\n")},
			"a#1\na\\u001b[2Jb\n"},
		{"a step", []api.Update{delta("a#1", "text", "half"), event("a#1", protocol.AttemptFailed{Attempt: 1, Error: protocol.ErrorInfo{Phase: "cut", Message: "off"}}), delta("a#1", "text", "whole"), event("a#1", said("whole"))},
			"a#1\nhalf\n! a#1  attempt 1 failed: cut: off\nwhole\n"},
	} {
		var b strings.Builder
		s := &transcript{Backdrop: Backdrop{}, w: &Screen{Writer: &b, Paint: Paint{true}}}
		for _, n := range c.notices {
			s.Notice(n)
		}
		if got := plainText(b.String()); got != c.want {
			t.Errorf("%s:\nhave %q\nwant %q", c.name, got, c.want)
		}
	}
}

// plainText shows what is dim in brackets, and leaves other colours out.
func plainText(s string) string {
	dim := Paint{true}.Dim("x")
	before, after, _ := strings.Cut(dim, "x")
	s = strings.ReplaceAll(s, before, "[")
	var b strings.Builder
	open := false
	for len(s) > 0 {
		switch {
		case s[0] == '[' && !strings.HasPrefix(s, "[2J"):
			open = true
			b.WriteByte('[')
			s = s[1:]
		case strings.HasPrefix(s, after) && open:
			open = false
			b.WriteByte(']')
			s = s[len(after):]
		case s[0] == 0x1b:
			_, rest, _ := strings.Cut(s, "m")
			s = rest
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return b.String()
}
