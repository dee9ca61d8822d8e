package cas_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"wf/cas"
	"wf/protocol"
)

// openClosing opens a store that ends with the test.
func openClosing(t *testing.T, dir string) *cas.Store {
	t.Helper()
	s := openStore(t, dir)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// remember appends n memories behind prev.
func remember(t *testing.T, m *cas.Chain, prev cas.EventRef, n int) cas.EventRef {
	t.Helper()
	for i := range n {
		got, err := m.Append(t.Context(), int64(i+1), prev, []cas.Draft{{Data: protocol.Remembered{Content: protocol.NewText(fmt.Sprintf("fact %d", i))}}})
		if err != nil {
			t.Fatal(err)
		}
		prev = cas.EventRef{Seq: got[0].Seq, CID: got[0].CID}
	}
	return prev
}

func memory(t *testing.T, s *cas.Store, scope string) *cas.Chain {
	t.Helper()
	m, err := cas.OpenMemory(s, scope)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMemoryIsAChainUnderItsOwnHead(t *testing.T) {
	s := openClosing(t, t.TempDir())
	m := memory(t, s, "role/flow/coder")
	for e, err := range m.After(t.Context(), 0) {
		t.Fatal("a memory that was never written has", e.Seq, err)
	}
	last := remember(t, m, cas.EventRef{}, 100)
	next := protocol.Seq(41)
	for e, err := range m.After(t.Context(), 40) {
		if err != nil || e.Seq != next {
			t.Fatal(e.Seq, next, err)
		}
		next++
	}
	if next != 101 || last.Seq != 100 {
		t.Errorf("read up to %d of %d", next-1, last.Seq)
	}
	if _, err := m.Append(t.Context(), 1, cas.EventRef{}, []cas.Draft{{Data: protocol.Removed{ID: 1}}}); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("an append behind nothing: %v", err)
	}
	scopes, err := cas.Memories(t.Context(), s)
	if err != nil || len(scopes) != 1 || scopes[0] != "role/flow/coder" {
		t.Error(scopes, err)
	}
}

func TestGCAndVerifyCoverMemories(t *testing.T) {
	dir := t.TempDir()
	s := openClosing(t, dir)
	last := remember(t, memory(t, s, "user/ada"), cas.EventRef{}, 70)
	r, err := cas.GC(t.Context(), s, cas.GCOptions{})
	if err != nil || r.Removed != 0 || r.Kept < 70 {
		t.Fatalf("%+v %v", r, err)
	}
	v, err := cas.Verify(t.Context(), s, cas.VerifyOptions{})
	if err != nil || !v.OK || v.Checked.Heads != 1 || v.Checked.Events != 70 {
		t.Fatalf("%+v %v", v, err)
	}
	// A store put back to yesterday lacks the newest memories.
	seen := cas.PinnedHeads{Heads: map[string]cas.Seen{"memory/user/ada": {Head: last.CID, Seq: last.Seq}}}
	older := openClosing(t, t.TempDir())
	remember(t, memory(t, older, "user/ada"), cas.EventRef{}, 60)
	v, err = cas.Verify(t.Context(), older, cas.VerifyOptions{LastSeen: seen})
	if err != nil || v.OK || v.Findings[0].Kind != "rolled_back" {
		t.Errorf("%+v %v", v.Findings, err)
	}
}

func TestTwoWritersOfOneMemoryLoseNothing(t *testing.T) {
	s := openClosing(t, t.TempDir())
	m := memory(t, s, "shared")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			prev := cas.EventRef{}
			for n := 0; n < 50; {
				got, err := m.Append(t.Context(), time.Now().UnixMicro(), prev, []cas.Draft{{Data: protocol.Remembered{Content: protocol.NewText("x")}}})
				switch {
				case errors.Is(err, protocol.ErrHeadMoved):
					for e, err := range m.After(t.Context(), prev.Seq) {
						if err != nil {
							t.Error(err)
							return
						}
						prev = cas.EventRef{Seq: e.Seq, CID: e.CID}
					}
				case err != nil:
					t.Error(err)
					return
				default:
					prev = cas.EventRef{Seq: got[0].Seq, CID: got[0].CID}
					n++
				}
			}
		})
	}
	wg.Wait()
	h, err := s.Head(t.Context(), protocol.MemoryHead("shared"))
	if err != nil || h.Seq != 100 {
		t.Error(h.Seq, err)
	}
}

func TestScopesAreNames(t *testing.T) {
	s := openClosing(t, t.TempDir())
	for _, scope := range []string{"", "/", "a/", "a//b", "..", "a/../b", "a b", "a\x00b", "\xff"} {
		if _, err := cas.OpenMemory(s, scope); !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("%q: %v", scope, err)
		}
	}
}
