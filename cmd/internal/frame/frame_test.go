package frame

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/cmd/internal/plain"
)

func TestAFrameGoesAroundLines(t *testing.T) {
	f := Frame{Title: "Runs", Hint: "1 of 9"}
	want := `╭─ Runs ───────────────╮
│ one                  │
│ 世界世界世界世界世界 │
╰───────────── 1 of 9 ─╯`
	if got := strings.Join(f.Draw([]string{"one", "世界世界世界世界世界"}, 24, 4), "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := strings.Join(f.Draw([]string{"one", "two and more"}, 6, 3), "\n"); got != "Runs  \none   \ntwo a…" {
		t.Errorf("got\n%s", got)
	}
}

func TestAFrameHasItsSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(0, 40).Draw(t, "width"), rapid.IntRange(0, 8).Draw(t, "height")
		f := Frame{Title: rapid.String().Draw(t, "title"), Hint: "hint"}
		f.Title = plain.Line(plain.Text(f.Title), 30)
		lines := f.Draw([]string{"a", "世世世世世世世世世世世世世世世世世世世世世世"}, width, height)
		if len(lines) != height {
			t.Fatalf("%d lines, want %d", len(lines), height)
		}
		for _, l := range lines {
			if plain.Width(l) != width {
				t.Fatalf("%q has %d cells, want %d", l, plain.Width(l), width)
			}
		}
	})
}
