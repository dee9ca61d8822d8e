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
		"e\u0301tude E\u0301TUDE":        "\u00e9tude \u00e9tude",
		"cafe\u0301":                     "caf\u00e9",
		"a\u0301\u0301 \u0301b":          "\u00e1\u0301 b",
		"\u212bngstr\u00f6m \u212a":      "\u00e5ngstr\u00f6m k",
		"I\u0307 \u0130 \u0131 ẞ ß":      "i i i ß ß",
		"\u1112\u1161\u11ab\u1100\u116e": "\ud55c\uad6c",
		"か\u3099 が":                      "が が",
		"サーバーabc ｻｰ":                     "サ ー バ ー abc ｻ ｰ",
		"日本語のテスト":                        "日 本 語 の テ ス ト",
		"🙂hello👩‍👩‍👧 ok️":                "hello ok",
		"ex\u00adam\u200dple x\u200by":   "example x y",
		"\u202eשלום\u202c עולם":          "שלום עולם",
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
		"Go runs":                      {{Word: "go"}, {Word: "runs", Prefix: true}},
		"go* a* x":                     {{Word: "go", Prefix: true}, {Word: "a", Prefix: true}, {Word: "x"}},
		"runs RUNS run":                {{Word: "runs", Prefix: true}, {Word: "run", Prefix: true}},
		`"not found"`:                  {{Word: "not", Prefix: true}, {Word: "found", Prefix: true}},
		"東京":                           {{Word: "東京", Chars: true}},
		"東 京":                          {{Word: "東"}, {Word: "京"}},
		"GPT東京x*東京":                    {{Word: "gpt", Prefix: true}, {Word: "東京", Chars: true}, {Word: "x", Prefix: true}},
		"한 한국":                         {{Word: "한"}, {Word: "한국", Prefix: true}},
		"か\u3099か":                     {{Word: "がか", Chars: true}},
		"cafe\u0301":                   {{Word: "café", Prefix: true}},
		strings.Repeat("東", 13) + "京の": {{Word: strings.Repeat("東", 13) + "京", Chars: true}},
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

// A sequence of characters is written where all of them are, side by side.
func TestASequenceIsWrittenAsItIs(t *testing.T) {
	for _, c := range []struct {
		search, text string
		at           int
	}{
		{"テスト", "日本語のテスト", 12},
		{"テスト", "テス テストト", 7},
		{"のの字", "のののの字", 6},
		{"テスト", "スト テ", -1},
		{"テスト", "テス", -1},
		{"がが", "か\u3099が", 0},
		{"データ", "データbase", 0},
		{"zeppelin", "of Zeppelins", 3},
		{"テスト", "", -1},
		{"葛飾区", "東京都葛\U000e0100飾区", 9},
		{"葛\U000e0100飾区", "葛飾区", 0},
		{strings.Repeat("𠀀", 10), strings.Repeat("𠀀"+strings.Repeat("\U0001e8d0", 30), 10), 0},
	} {
		wanted, err := api.ReadSearch(c.search)
		if err != nil || len(wanted) != 1 {
			t.Fatal(wanted, err)
		}
		at := -1
		for w := range api.Words(c.text) {
			if wanted[0].At(c.text, w) {
				at = w.From
				break
			}
		}
		if at != c.at {
			t.Errorf("%q is written in %q at %d, want %d", c.search, c.text, at, c.at)
		}
	}
	if w := (api.Wanted{Word: "東京", Chars: true}); !w.Fits("京") || w.Fits("x") {
		t.Error("a character fits the sequence that it is a part of")
	}
	if a, b := api.Folded("Jose\u0301"), api.Folded("JOSÉ"); a != b {
		t.Errorf("%q and %q differ", a, b)
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
