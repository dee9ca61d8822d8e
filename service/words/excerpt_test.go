package words

import (
	"strings"
	"testing"
	"unicode/utf8"

	"wf/api"
)

func TestAnExcerptShowsTheWord(t *testing.T) {
	wanted := []api.Wanted{{Word: "zeppelin", Prefix: true}}
	for _, c := range []struct{ name, text, want string }{
		{"a short text is shown whole", "Of Zeppelins.", "Of Zeppelins."},
		{"it is one line", "Of\n\n\tZeppelins \r\n here\n", "Of Zeppelins here"},
		{"nothing acts on a terminal", "\x1b[2J Zeppelin\x00\u202e\u200b\a", "[2J Zeppelin"},
		{"without the word there is none", "Of airships", ""},
		{"what stands before is cut at a word", strings.Repeat("before ", 30) + "zeppelin", "… " + strings.Repeat("before ", 8) + "zeppelin"},
		{"what is no text is left out", "\xff\xfezeppelin", "\ufffd\ufffdzeppelin"},
	} {
		if got := excerpt(c.text, wanted); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, text := range []string{"zeppelin" + strings.Repeat(" after", 100), strings.Repeat("東", 300) + "zeppelin" + strings.Repeat("京", 300), strings.Repeat("x", 500) + " zeppelin " + strings.Repeat("y", 500), "zeppelin" + strings.Repeat("z", 185), "zeppelin" + strings.Repeat("z", 191), "zeppelin" + strings.Repeat("z", 192), "zeppelin" + strings.Repeat("z", 193)} {
		got := excerpt(text, wanted)
		if n := utf8.RuneCountInString(got); n > excerptMax || !strings.Contains(got, "zeppelin") || !utf8.ValidString(got) {
			t.Errorf("%d characters: %q", n, got)
		}
		if cut := strings.HasSuffix(got, "…"); cut != (utf8.RuneCountInString(text[strings.Index(text, "zeppelin"):]) > excerptMax-1) && strings.HasPrefix(text, "zeppelin") {
			t.Errorf("%d characters of %d, cut off: %v", utf8.RuneCountInString(got), utf8.RuneCountInString(text), cut)
		}
	}
	if got := excerpt(strings.Repeat(" ", textMax)+"zeppelin", wanted); got != "" {
		t.Errorf("behind what is indexed: %q", got)
	}
}
