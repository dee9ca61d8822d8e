package markdown_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cmd/internal/markdown"
)

// A text in parts shows what it shows as a whole, however it came.
func TestPartsShowWhatTheWholeShows(t *testing.T) {
	lines := []string{"Words and **bold** ones, with `code` and é in between.", "", "- an item", "# Heading", "```go", "```", "~~~", "x := 1 // 漢字 👩", "> said", "| a | b |", "|---|---|", "1. one", "---"}
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for b.Len() < 100<<10 {
			b.WriteString(lines[rnd.IntN(len(lines))] + "\n")
		}
		text := b.String()
		var p markdown.Parts
		for at := 0; at < len(text); at += 1 + rnd.IntN(9000) {
			if !p.Grow(text[:strings.LastIndexByte(text[:at], '\n')+1], "| tail\n```") {
				t.Fatalf("seed %d: a text that grows is another one at %d", seed, at)
			}
		}
		p.Grow(text, "")
		if p.Len() < 3 || p.Complete() != p.Len()-1 {
			t.Fatalf("seed %d: %d parts, %d of them complete", seed, p.Len(), p.Complete())
		}
		var got []string
		for i := range p.Len() {
			got = append(got, p.Lines(i, 60)...)
		}
		if want := markdown.Lines(text, 60); !slices.Equal(got, want) {
			t.Fatalf("seed %d:\n%s", seed, cmp.Diff(want, got))
		}
		if p.Grow("another", "") || p.Len() != 1 {
			t.Errorf("seed %d: another text is not noticed: %d parts", seed, p.Len())
		}
	}
}

// A line that never ends is cut, between letters.
func TestAPartHasABound(t *testing.T) {
	text := strings.Repeat("漢", 400<<10)
	var p markdown.Parts
	p.Grow(text, "")
	all := ""
	for i := range p.Len() {
		all += strings.Join(p.Lines(i, 60), "")
	}
	if p.Len() != 19 || all != text {
		t.Errorf("%d parts with %d of %d bytes", p.Len(), len(all), len(text))
	}
}
