package memory_test

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/protocol"
)

// ledger is a journal in memory that several stores share.
type ledger struct {
	mu      sync.Mutex
	entries []protocol.Entry
	texts   map[protocol.Link]string
	appends int
	refused int  // appends that came late
	killed  bool // appends are made, and reported as failed
}

func (l *ledger) After(_ context.Context, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		l.mu.Lock()
		all := slices.Clone(l.entries)
		l.mu.Unlock()
		for _, e := range all[min(int(from), len(all)):] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (l *ledger) Append(_ context.Context, seq protocol.Seq, head protocol.Link, changes []memory.Change) ([]protocol.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int(seq) != len(l.entries) || seq > 0 && l.entries[seq-1].CID != head {
		l.refused++
		return nil, fmt.Errorf("append: %w", protocol.ErrHeadMoved)
	}
	l.appends++
	from := len(l.entries)
	for _, c := range changes {
		e := protocol.Entry{Event: protocol.Event{Kind: protocol.KindEvent, V: 1, Prev: head, Seq: protocol.Seq(len(l.entries) + 1),
			TS: int64(len(l.entries)+1) * 1e6, Type: c.Data.EventType()}}
		if c.Step != "" {
			e.Step = &c.Step
		}
		data, err := cbor.Marshal(l.spilled(c.Data))
		if err != nil {
			return nil, err
		}
		e.Data = data
		head = link(fmt.Sprint(e.Seq, string(data)))
		e.CID = head
		l.entries = append(l.entries, e)
	}
	if l.killed {
		return nil, errKilled
	}
	return l.entries[from:], nil
}

var errKilled = fmt.Errorf("killed after the commit")

// spilled moves long texts out, as a store does.
func (l *ledger) spilled(d protocol.Data) any {
	v := reflect.New(reflect.TypeOf(d))
	v.Elem().Set(reflect.ValueOf(d))
	if texts, ok := v.Interface().(protocol.Texts); ok {
		for _, t := range texts.Texts() {
			if len(t.S) > protocol.InlineMax {
				t.Link = link(t.S)
				if l.texts == nil {
					l.texts = map[protocol.Link]string{}
				}
				l.texts[t.Link] = t.S
			}
		}
	}
	return v.Interface()
}

func (l *ledger) Text(_ context.Context, at protocol.Link) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, ok := l.texts[at]
	if !ok {
		return "", protocol.ErrNotFound
	}
	return text, nil
}

func (l *ledger) types() []string {
	var out []string
	for _, e := range l.entries {
		out = append(out, string(e.Type))
	}
	return out
}

func link(s string) protocol.Link {
	sum, err := multihash.Sum([]byte(s), multihash.SHA2_256, -1)
	if err != nil {
		panic(err) // of a known hash
	}
	return protocol.NewLink(cid.NewCidV1(cid.Raw, sum))
}

// axes embeds a text by the numbers in it: "x=0.5 y=1" points there, in dim dimensions.
type axes struct {
	dim   int
	asked *[]string
	err   error
}

func (a axes) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	if a.err != nil {
		return nil, a.err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if a.asked != nil {
			*a.asked = append(*a.asked, text)
		}
		out[i] = make([]float32, a.dim)
		for _, word := range strings.Fields(text) {
			name, value, ok := strings.Cut(word, "=")
			var x float32
			if _, err := fmt.Sscan(value, &x); ok && err == nil && len(name) == 1 && int(name[0]-'a') < a.dim {
				out[i][name[0]-'a'] = x
			}
		}
	}
	return out, nil
}

func (a axes) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	out, err := a.EmbedDocuments(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// stage opens stores over one ledger and one directory of vectors.
type stage struct {
	ledger *ledger
	dir    string
	axes   axes
}

func newStage(t testing.TB) *stage {
	return &stage{ledger: &ledger{}, dir: t.TempDir(), axes: axes{dim: 4, asked: &[]string{}}}
}

func (s *stage) open(t testing.TB, model string) *memory.Store {
	t.Helper()
	m, err := memory.Open(t.Context(), memory.Config{Scope: "test", Journal: s.ledger, Vectors: s.dir, Model: model,
		Embed: func(name string) (embed.Embedder, error) {
			if name == embed.LexicalName {
				return embed.Open(name)
			}
			return s.axes, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func remember(t testing.TB, s *memory.Store, content string, tags ...string) protocol.Seq {
	t.Helper()
	ids, err := s.Remember(t.Context(), memory.Note{Content: content, Tags: tags})
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

func recalled(t testing.TB, s *memory.Store, q memory.Query) []protocol.Seq {
	t.Helper()
	hits, err := s.Recall(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var ids []protocol.Seq
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids
}
