package api_test

import (
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

func TestWordsOfATextAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"  —  ?!":                        "",
		"The Quick-brown fox_jumps":      "the quick brown fox jumps",
		"don't v1.26 0x1F":               "don t v1 26 0x1f",
		"ÅNGSTRÖM straße":                "ångström straße",
		"ΟΔΟΣ οδος Οδός":                 "οδοσ οδοσ οδόσ",
		"東京 tower":                       "東 京 tower",
		"abc東d":                          "abc 東 d",
		"カタカナひらがな":                       "カ タ カ ナ ひ ら が な",
		"한국어 текст":                      "한국어 текст",
		"e\u0301tude":                    "e\u0301tude",
		"\xffbad\xfe bytes":              "bad bytes",
		strings.Repeat("x", 41):          strings.Repeat("x", 40),
		strings.Repeat("é", 30):          strings.Repeat("é", 20),
		"٣ digits ٤":                     "٣ digits ٤",
		"a\u0000b":                       "a b",
		"ends with a word\nfoo\tbar\r\n": "ends with a word foo bar",
	} {
		var got []string
		for w := range api.Words(text) {
			got = append(got, w.Text)
			if w.From < 0 || w.To > len(text) || w.From >= w.To {
				t.Errorf("%q: %q is at %d to %d", text, w.Text, w.From, w.To)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q has the words %q, want %q", text, s, want)
		}
	}
	for w := range api.Words("one two") {
		if w.Text != "one" {
			t.Errorf("it goes on with %q", w.Text)
		}
		break
	}
}

func TestASearchIsRead(t *testing.T) {
	for text, want := range map[string][]api.Wanted{
		"Go runs":       {{Word: "go"}, {Word: "runs", Prefix: true}},
		"go* a* x":      {{Word: "go", Prefix: true}, {Word: "a", Prefix: true}, {Word: "x"}},
		"runs RUNS run": {{Word: "runs", Prefix: true}, {Word: "run", Prefix: true}},
		`"not found"`:   {{Word: "not", Prefix: true}, {Word: "found", Prefix: true}},
		"東京":            {{Word: "東"}, {Word: "京"}},
	} {
		if got, err := api.ReadSearch(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	long := strings.Fields(strings.Repeat("a b c d e f g h ", 4) + "i")
	for i := range long {
		long[i] += strings.Repeat("z", i)
	}
	if got, err := api.ReadSearch(strings.Join(long[:api.WantedMax], " ")); err != nil || len(got) != api.WantedMax {
		t.Errorf("%d words: %d, %v", api.WantedMax, len(got), err)
	}
	for _, bad := range []string{"", "?!*", strings.Join(long[:api.WantedMax+1], " ")} {
		if _, err := api.ReadSearch(bad); protocol.CodeOf(err) != protocol.ErrBadRequest.Code || protocol.HintOf(err) == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if w := (api.Wanted{Word: "run"}); w.Fits("runs") || !w.Fits("run") {
		t.Error("a word that is no prefix fits itself alone")
	}
	if w := (api.Wanted{Word: "run", Prefix: true}); !w.Fits("runs") || w.Fits("rub") {
		t.Error("a prefix fits what begins with it")
	}
}

func FuzzWords(f *testing.F) {
	f.Add("a 東 \xff é")
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for w := range api.Words(text) {
			if w.From < last || w.To <= w.From || w.To > len(text) || w.Text == "" || len(w.Text) > 48 {
				t.Fatalf("%q: %+v", text, w)
			}
			last = w.To
		}
	})
}
