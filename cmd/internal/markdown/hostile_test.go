package markdown

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"pgregory.net/rapid"
)

// hostile are texts of n bytes that a reader which looks ahead from each mark would read in the square of n.
var hostile = func() map[string]func(n int) string {
	of := map[string]func(int) string{
		"backticks, each run longer": func(n int) string { return growing(n, "`", "a ") },
		"indents, each deeper":       func(n int) string { return growing(n, " ", "- a\n") },
		"quotes, each deeper":        func(n int) string { return growing(n, "> ", "a\n") },
		"a wide last row":            func(n int) string { return repeated("-|-\n", n-200) + strings.Repeat("x", 150) + "|" },
		"a target without an end":    func(n int) string { return repeated("[a", n/2) + "](" + repeated("x", n/2) },
		"a long code span":           func(n int) string { return "`" + repeated("a ", n-2) + "`" },
	}
	for _, u := range []string{"[", "![", "[[", "*", "**", "***", "_", "__", "`", "``", "```", "~~", "<", "<a ", "\\", "!", "](", "[a](", "[a]", "[a](b ",
		"_a ", "__a ", "*a ", "**a ", "***a ", "~~a ", "`a ", "``a` ", "a_", "a*", "a** ", " **", "** ", "*a_", "**a*", "[*a", "`[", "**a** ", "[a](b) ",
		"|", "|a", "| a |", "|a|\n", "|-|", "-|-\n", "|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|\n", "| ", "a|b\n-|-\n",
		"> ", ">", "> > ", "> a\n", "- ", "- a\n", "  - ", "1. ", "> - ", "- > ", "    ", "    a\n", "\t", "# ", "#", " #", "* * ", "- - ", "_ ", "\n", "a\n", "~~~\n", "``` \n", "世", "**世"} {
		of[u] = func(n int) string { return repeated(u, n) }
	}
	return of
}()

func repeated(u string, n int) string { return strings.Repeat(u, max(1, n/len(u))) }

func growing(n int, u, end string) string {
	var b strings.Builder
	for i := 1; b.Len() < n; i++ {
		b.WriteString(strings.Repeat(u, i) + end)
	}
	return b.String()
}

// The terminal shows a hostile answer in time that grows with its length: each byte is looked at a bounded number of times in search of
// marks.
func TestF315AHostileTextIsReadInStepsThatGrowWithItsLength(t *testing.T) {
	const most = 12 // there are seven marks, the ends of a link, and the text itself
	for name, text := range hostile {
		for _, n := range []int{1 << 10, 16 << 10, 64 << 10} {
			s := text(n)
			p := printer{width: 80}
			p.lines(strings.Split(s, "\n"))
			if p.looked > most*len(s) {
				t.Errorf("%q of %d bytes: %d bytes are looked at, %d for each", name, len(s), p.looked, p.looked/len(s))
			}
		}
	}
}

// span is a mark as a regular expression says it; the first that matches is taken.
var spans = []struct {
	re    *regexp.Regexp
	style *lipgloss.Style // nil is a link
}{
	{regexp.MustCompile("^``(.+?)``"), &code},
	{regexp.MustCompile("^`([^`]+)`"), &code},
	{regexp.MustCompile(`^\*\*(\S|\S.*?\S)\*\*`), &strong},
	{regexp.MustCompile(`^__(\S|\S.*?\S)__\b`), &strong},
	{regexp.MustCompile(`^~~(\S|\S.*?\S)~~`), &struck},
	{regexp.MustCompile(`^\*([^\s*]|[^\s*][^*]*[^\s*])\*`), &slanted},
	{regexp.MustCompile(`^_([^\s_]|[^\s_][^_]*[^\s_])_\b`), &slanted},
	{regexp.MustCompile(`^!?\[([^\]]+)\]\(([^()\s]+)\)`), nil},
}

// A mark ends where its regular expression says.
func TestMarksAreThoseOfTheirExpressions(t *testing.T) {
	part := rapid.SampledFrom([]string{"`", "``", "*", "**", "_", "__", "~", "~~", "[", "]", "(", ")", "](", "!", "\\", " ", "\t", "a", "b", "é", "世", "\xff", "1", "-"})
	show := func(style *lipgloss.Style, text string) string {
		return "<" + string(rune('A'+slices.Index([]*lipgloss.Style{&code, &strong, &struck, &slanted, &dim}, style))) + text + ">"
	}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(part, 1, 40).Draw(t, "parts"), "")
		r := reading{s: s, show: show}
		for i := range len(s) {
			if !strings.ContainsRune("`*_~[!", rune(s[i])) {
				continue
			}
			shown, end := r.span(i)
			want, length := "", 0
			for _, x := range spans {
				if m := x.re.FindStringSubmatch(s[i:]); m != nil {
					switch length = i + len(m[0]); {
					case x.style != nil:
						want = show(x.style, m[1])
					case m[1] == m[2]:
						want = show(&code, m[2])
					default:
						want = m[1] + " " + show(&dim, "("+m[2]+")")
					}
					break
				}
			}
			if shown != want || end != length {
				t.Fatalf("%q at %d: %q to %d, want %q to %d", s, i, shown, end, want, length)
			}
		}
	})
}

func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile {
		s := text(64 << 10)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Lines(s, 80)
			}
		})
	}
}
