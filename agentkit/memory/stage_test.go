package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/memory/memorytest"
	"wf/protocol"
)

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
	ledger *memorytest.Ledger
	dir    string
	axes   axes
}

func newStage(t testing.TB) *stage {
	return &stage{ledger: &memorytest.Ledger{}, dir: t.TempDir(), axes: axes{dim: 4, asked: &[]string{}}}
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
