package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"wf/engine/lang"
)

// TestThePageOfTheLanguageFitsATerminal holds for the whole page, examples included.
func TestThePageOfTheLanguageFitsATerminal(t *testing.T) {
	text := pageText(lang.Page())
	for i, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > helpWidth {
			t.Errorf("line %d has %d columns: %s", i+1, n, line)
		}
		if strings.HasPrefix(line, "#") || strings.Contains(line, "](") || strings.HasPrefix(line, "```") {
			t.Errorf("line %d is Markdown: %s", i+1, line)
		}
	}
	for _, want := range []string{"The workflow language\n=====", "\nLoops\n-----\n", "roles.*.retry.delay\n\nPause"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestMarkdownAsPlainText(t *testing.T) {
	long := strings.Repeat("word ", 20)
	for markdown, want := range map[string]string{
		"# A `b`\n":                     "A b\n===\n",
		"one\ntwo\n":                    "one two\n",
		"- a\n  b\n- c\n":               "  - a b\n  - c\n",
		"a *b* **c** `d` `e f`":         "a b c d `e f`\n",
		"[a](b.md) [c](#d) [e](e)":      "a (b.md) c e\n",
		"x\n\n```yaml\na: *b\n```\n":    "x\n\n    a: *b\n",
		"`two\nlines`":                  "`two lines`\n",
		"<!-- hidden -->\nx":            "x\n",
		long:                            strings.TrimSpace(strings.Repeat("word ", 16)) + "\nword word word word\n",
		"- " + long:                     "  - " + strings.TrimSpace(strings.Repeat("word ", 15)) + "\n    word word word word word\n",
		"    wf run\n    wf show\ntext": "    wf run\n    wf show\ntext\n",
	} {
		if got := pageText(markdown); got != want {
			t.Errorf("%q gives\n%q, want\n%q", markdown, got, want)
		}
	}
}
