package words

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// A text is found in whatever way its letters are put together, and in scripts that are written without blanks.
func TestTextsOfAllScriptsAreFound(t *testing.T) {
	p := newPlace(t, t.TempDir())
	runs := map[string]protocol.RunID{}
	for _, text := range []string{"Caf\u00e9 \u00c5ngstr\u00f6m", "re\u0301sume\u0301", "日本語のテスト", "スト とテ", "データベース 東京都", "שלום \u202eעולם\u202c", "ship it 🚢 c\u0327a", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "か\u3099くせい", "a…b — !!"} {
		runs[text] = p.begin(talk, text)
	}
	p.catchUp()
	p.again()
	for search, in := range map[string][]string{
		"cafe\u0301": {"Caf\u00e9 \u00c5ngstr\u00f6m"}, "CAFÉ": {"Caf\u00e9 \u00c5ngstr\u00f6m"}, "a\u030angstro\u0308m": {"Caf\u00e9 \u00c5ngstr\u00f6m"}, "\u212bng*": {"Caf\u00e9 \u00c5ngstr\u00f6m"},
		"r\u00e9sum\u00e9": {"re\u0301sume\u0301"}, "\u00e7a": {"ship it 🚢 c\u0327a"}, "cafe": nil,
		"テスト": {"日本語のテスト"}, "日本語": {"日本語のテスト"}, "テ": {"日本語のテスト", "スト とテ"}, "テスト 日本": {"日本語のテスト"}, "データ": {"データベース 東京都"}, "京都": {"データベース 東京都"},
		"東京 日本": nil, "שלום": {"שלום \u202eעולם\u202c"}, "עולם": {"שלום \u202eעולם\u202c"}, "한국": {"\u1112\u1161\u11ab\u1100\u116e\u11a8"}, "한국*": {"\u1112\u1161\u11ab\u1100\u116e\u11a8"}, "がくせい": {"か\u3099くせい"},
	} {
		var want []protocol.RunID
		for _, text := range in {
			want = append(want, runs[text])
		}
		if search == "テスト" { // its characters stand in that text too, and of their order nothing is known
			want = append(want, runs["スト とテ"])
		}
		p.want(search, want...)
	}
	for _, c := range []struct{ search, in, want string }{
		{"テスト", "日本語のテスト", "Speak of 日本語のテスト"}, {"r\u00e9sum\u00e9", "re\u0301sume\u0301", "Speak of re\u0301sume\u0301"}, {"עולם", "שלום \u202eעולם\u202c", "Speak of שלום עולם"},
	} {
		hits, err := p.find(c.search).Hits(t.Context(), runs[c.in])
		if err != nil || !slices.ContainsFunc(hits, func(h api.Hit) bool { return h.Text == c.want }) {
			t.Errorf("%q: %+v, %v, want %q", c.search, hits, err, c.want)
		}
	}
}

// Of a sequence all characters stand in one text.
func TestASequenceIsOfOneText(t *testing.T) {
	b := &builder{}
	b.begin(unit{id: "R", seq: 3})
	b.text(1, ofAnswer, "東は")
	b.text(2, ofAnswer, "京は")
	b.text(3, ofAnswer, "東の京")
	data := b.encode(nil)
	s, err := readSegment(bytes.NewReader(data), nil)
	if err != nil {
		t.Fatal(err)
	}
	for search, want := range map[string]int{"東京": 1, "東は": 1, "は": 2, "東西": 0} {
		wanted, err := api.ReadSearch(search)
		if err != nil {
			t.Fatal(err)
		}
		if got := matched(t, s, data, wanted[0]); len(got) != want {
			t.Errorf("%q stands in %v, want %d texts", search, got, want)
		}
	}
}

// An index of the former format is not read, and another takes its place: its words were others.
func TestAnIndexOfTheFormerFormatIsMadeAnew(t *testing.T) {
	for _, manifestToo := range []bool{true, false} { // or a segment alone is, as one that was put there
		p := newPlace(t, t.TempDir())
		run := p.begin(talk, "caf\u00e9")
		p.catchUp()
		former := p.segments()
		for _, name := range append(former, manifestName) {
			path := filepath.Join(p.folder(), name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if name != manifestName {
				data = bytes.Replace(data, []byte(segMagic), []byte("wf words 1\n"), 1)
			} else if manifestToo {
				data = bytes.Replace(data, []byte(manifestSchema), []byte("wf.search/v1"), 1)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.again()
		if p.want("caf\u00e9"); p.behind() != 1 {
			t.Error("it counts")
		}
		p.catchUp()
		p.want("cafe\u0301", run)
		if slices.ContainsFunc(p.segments(), func(name string) bool { return slices.Contains(former, name) }) {
			t.Error("its segments are left")
		}
	}
	p := newPlace(t, t.TempDir())
	run := p.begin(talk, "rails")
	p.catchUp()
	path := filepath.Join(p.folder(), manifestName)
	data, err := os.ReadFile(path)
	err = errors.Join(err, os.WriteFile(path, bytes.Replace(data, []byte(manifestSchema), []byte("wf.search/v1"), 1), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	p.again()
	if err := errors.Join(p.e.Cancel(t.Context(), run, "ben", ""), second(p.e.Delete(t.Context(), run, engine.Burial{})), p.x.Purge(t.Context(), []protocol.RunID{run})); err != nil || p.holds("rails") {
		t.Errorf("what is deleted is left in an index of the former format: %v", err)
	}
}

// An index of Japanese takes at most 0.7 of the texts, too.
func TestAnIndexOfCharactersIsSmallerThanItsTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	text := func(n int) string { // kana are frequent, and of Han some are more so than others
		var b strings.Builder
		for b.Len() < n {
			switch rng.IntN(10) {
			case 0, 1, 2, 3, 4:
				b.WriteRune('ぁ' + rune(rng.IntN(80)))
			case 5, 6:
				b.WriteRune('ァ' + rune(rng.IntN(80)))
			default:
				b.WriteRune('一' + rune(2000*rng.Float64()*rng.Float64()*rng.Float64()))
			}
		}
		return b.String()
	}
	for _, c := range []struct{ runs, texts, size int }{{1, 20, 1500}, {20, 10, 100}, {100, 10, 500}, {300, 10, 2000}} {
		var b builder
		for range c.runs {
			b.begin(unit{id: strings.Repeat("R", 10), head: strings.Repeat("h", 36), from: 0, seq: protocol.Seq(c.texts)})
			for i := range c.texts {
				b.text(protocol.Seq(i+1), ofAnswer, text(c.size/2+rng.IntN(c.size)))
			}
		}
		size := len(b.encode(nil))
		if part := float64(size) / float64(b.texts); part > 0.7 {
			t.Errorf("%d runs with %d texts of about %d bytes: %.2f of %d bytes", c.runs, c.texts, c.size, part, b.texts)
		} else {
			t.Logf("%d runs with %d texts of about %d bytes: %.2f of %d bytes", c.runs, c.texts, c.size, part, b.texts)
		}
	}
}
