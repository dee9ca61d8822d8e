package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"wf/protocol/tree"
	"wf/roles/workspace"
)

// whole takes all of a directory.
func whole(b testing.TB, seen *workspace.Seen, put func(tree.Block) error) workspace.Taking {
	rules, err := tree.NewIgnored(func(string) ([]byte, error) { return nil, nil }, tree.Globs{}, tree.Globs{})
	if err != nil {
		b.Fatal(err)
	}
	return workspace.Taking{Choose: rules, MaxSize: 1 << 40, MaxTotal: 1 << 40, MaxFiles: 1 << 30, Put: put, Whole: true, Seen: seen}
}

func manyFiles(b testing.TB, dirs, files int) string {
	top := b.TempDir()
	for i := range dirs {
		dir := filepath.Join(top, fmt.Sprintf("package-%03d/sub", i))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			b.Fatal(err)
		}
		for j := range files {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("some-file-%03d.go", j)), fmt.Appendf(nil, "%d %d", i, j), 0o666); err != nil {
				b.Fatal(err)
			}
		}
	}
	return top
}

// C-1: an unchanged directory of 50,000 files, and one of which one file has changed.
func BenchmarkC01Unchanged(b *testing.B) {
	top := manyFiles(b, 1000, 50)
	seen := workspace.NewSeen(0)
	none := func(tree.Block) error { return nil }
	if _, n, err := workspace.Take(context.Background(), top, whole(b, seen, none)); err != nil || n != 50_000 {
		b.Fatal(n, err)
	}
	for b.Loop() {
		if _, _, err := workspace.Take(context.Background(), top, whole(b, seen, none)); err != nil {
			b.Fatal(err)
		}
	}
}
