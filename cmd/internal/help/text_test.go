package help

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"wf/engine/lang"
)

// TestThePageOfTheLanguageFitsATerminal holds for the whole page, examples included.
func TestThePageOfTheLanguageFitsATerminal(t *testing.T) {
	text := Text(lang.Page())
	for i, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > textWidth {
			t.Errorf("line %d has %d columns: %s", i+1, n, line)
		}
		if strings.HasPrefix(line, "#") || strings.Contains(line, "](") || strings.Contains(line, "```") || strings.Contains(line, "\x1b") {
			t.Errorf("line %d is no plain text: %q", i+1, line)
		}
	}
	for _, want := range []string{"The workflow language\n=====", "\nLoops\n──", "roles.*.retry.delay\n\nPause"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// No example is broken into two lines: a reader copies it.
	for _, b := range regexp.MustCompile("(?s)```yaml\n(.*?)```\n").FindAllStringSubmatch(lang.Page(), -1) {
		if example := "  " + strings.ReplaceAll(strings.TrimSuffix(b[1], "\n"), "\n", "\n  ") + "\n"; !strings.Contains(text, example) {
			t.Errorf("the terminal does not show the example as it is:\n%s", example)
		}
	}
}

func TestAPageIsShownInParagraphs(t *testing.T) {
	long := strings.Repeat("word ", 20)
	for page, want := range map[string]string{
		"# A `b`\n":                  "A b\n=====\n",
		"one\ntwo\n\nthree":          "one two\n\nthree\n",
		"- a\n  b\n- c\n":            "• a b\n• c\n",
		"a *b* **c** `d` `e f`":      "a b c d `e f`\n",
		"[a](b.md) [c](#d)":          "a (b.md) c\n",
		"x\n\n```yaml\na: *b\n```\n": "x\n\n  a: *b\n",
		"`two\nlines`":               "`two lines`\n",
		long:                         strings.TrimSpace(strings.Repeat("word ", 16)) + "\nword word word word\n",
		"    wf run\n    wf show\nx": "    wf run\n    wf show\nx\n",
	} {
		if got := Text(page); got != want {
			t.Errorf("%q gives\n%q, want\n%q", page, got, want)
		}
	}
}
