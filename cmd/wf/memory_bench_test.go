package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"wf/agentkit/memory"
	"wf/protocol"
	"wf/store"
)

// pieces remembers n pieces of files, and makes their vectors.
func pieces(b *testing.B, a *app, s store.Store, n int) {
	b.Helper()
	m, err := a.OpenMemory(b.Context(), s, codeScope, "")
	if err != nil {
		b.Fatal(err)
	}
	notes := make([]memory.Note, 0, 1000)
	for i := range n {
		var text strings.Builder
		for line := range 12 {
			fmt.Fprintf(&text, "func part%d_%d(store *Store) error { return store.lock%d.turn(%d) }\n", i, line, i%97, line)
		}
		notes = append(notes, memory.Note{Content: text.String(), Place: &protocol.MemoryPlace{File: fmt.Sprintf("pkg/dir%d/file%d.go", i%40, i/20), Line: 12*(i%20) + 1, End: 12*(i%20) + 12}})
		if len(notes) == cap(notes) || i == n-1 {
			if _, err := m.Remember(b.Context(), notes...); err != nil {
				b.Fatal(err)
			}
			notes = notes[:0]
		}
	}
	if _, err := m.Reindex(b.Context(), "", memory.Origin{}, nil); err != nil {
		b.Fatal(err)
	}
	if err := m.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkMemorySearch asks a memory of 50,000 pieces: as a process that has just begun does, and
// as one does that has asked before.
func BenchmarkMemorySearch(b *testing.B) {
	dir := b.TempDir()
	for name, value := range map[string]string{"HOME": dir, "WF_STORE": dir + "/.wf", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""} {
		b.Setenv(name, value)
	}
	b.Chdir(dir)
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.Quiet = true
	s, err := a.OpenStore(b.Context(), false)
	if err != nil {
		b.Fatal(err)
	}
	pieces(b, a, s, 50_000)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	search := func(b *testing.B, m *memory.Store) {
		hits, err := m.Recall(b.Context(), memory.Query{Text: "where is part4711_3 of the store?"})
		if err != nil || len(hits) == 0 || !strings.Contains(hits[0].Place.File, "file235.go") {
			b.Fatal(hits, err)
		}
	}
	open := func(b *testing.B) (store.Store, *memory.Store) {
		s, err := a.OpenStore(b.Context(), false)
		if err != nil {
			b.Fatal(err)
		}
		m, err := a.OpenMemory(b.Context(), s, codeScope, "")
		if err != nil {
			b.Fatal(err)
		}
		return s, m
	}
	shut := func(b *testing.B, s store.Store, m *memory.Store) {
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s, m := open(b)
			search(b, m)
			shut(b, s, m)
		}
	})
	b.Run("second", func(b *testing.B) {
		s, m := open(b)
		search(b, m)
		b.ReportAllocs()
		for b.Loop() {
			search(b, m)
		}
		shut(b, s, m)
	})
}
