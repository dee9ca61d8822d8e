package markdown

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"wf/cmd/internal/plain"
)

func TestWhatModelsWriteIsShown(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"paragraphs", "one two three four\n\nfive", "one two three\nfour\n\nfive"},
		{"a heading", "## The **plan** ##\nnext", "The plan\nnext"},
		{"a list", "- first point of all\n  - inner one\n* second\n10. tenth of them", "• first point\n  of all\n  • inner one\n• second\n10. tenth of\n    them"},
		{"a quote", "> said he and more", "▎ said he and\n▎ more"},
		{"code", "```go\nif a*b*c {\n\treturn `x`\n}\n```\ndone", "  if a*b*c {\n      return `x`\n  }\ndone"},
		{"code without an end", "~~~\nx **y**\n```", "  x **y**\n  ```"},
		{"a rule", "a\n***\nb", "a\n──────────────\nb"},
		{"a table", "| a | bcd |\n|---|:-:|\n| **e** | f \\| g |\nend", "a │ bcd\n──┼──────\ne │ f | g\nend"},
		{"a table that is too wide", "| abcdef | ghijkl |\n|---|---|", "| abcdef |\nghijkl |\n|---|---|"},
		{"emphasis", "**a** *b* _c_ `d` ~~e~~ x", "a b c d e x"},
		{"what is no emphasis", "2 * 3 * 4\nsnake_case_name\n**open\n\\*no\\*", "2 * 3 * 4\nsnake_case_nam\ne\n**open\n*no*"},
		{"links", "[a](b) [c](c)", "a (b) c"},
	} {
		got := ansi.Strip(strings.Join(Lines(c.text, 14), "\n"))
		if got != c.want {
			t.Errorf("%s is shown as\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestEveryLineFitsAndNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab 世👍|-*_`~#>[]().1\n\\"))).Draw(t, "text")
		width := rapid.IntRange(2, 30).Draw(t, "width")
		var shown strings.Builder
		for _, l := range Lines(text, width) {
			if plain.Width(l) > width {
				t.Fatalf("%q of %q has more than %d cells", l, text, width)
			}
			shown.WriteString(ansi.Strip(l))
		}
		for _, r := range "ab世👍" {
			if want, got := strings.Count(text, string(r)), strings.Count(shown.String(), string(r)); got < want && !strings.ContainsAny(text, "`~") {
				t.Fatalf("%q is shown as %q: %d of %d %c", text, shown.String(), got, want, r)
			}
		}
	})
}

// A text that grows is shown as it is when it is there at once.
func TestATextGrows(t *testing.T) {
	part := rapid.SampledFrom([]string{"word ", "\n", "\n\n", "| a | b |\n", "|---|---|\n", "```\n", "- item", "**bo", "ld**", "世", "a|b"})
	rapid.Check(t, func(t *rapid.T) {
		var g Growing
		text, width := "", 20
		for i, s := range rapid.SliceOfN(part, 1, 30).Draw(t, "parts") {
			text += s
			if i == 20 {
				width = 9
			}
			got, want := g.Lines(text, width), Lines(text, width)
			if !slices.Equal(got, want) {
				t.Fatalf("%q grew to\n%q\nwant\n%q", text, got, want)
			}
		}
	})
}
