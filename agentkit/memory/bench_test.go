package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/memory/memorytest"
)

// noise embeds a text by chance, the same each time, in 768 dimensions.
type noise struct{}

func (noise) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		k := embed.KeyOf("noise", text)
		r := rand.New(rand.NewChaCha8([32]byte(k)))
		out[i] = make([]float32, 768)
		for j := range out[i] {
			out[i][j] = r.Float32() - 0.5
		}
	}
	return out, nil
}

func (n noise) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	out, err := n.EmbedDocuments(ctx, []string{text})
	return out[0], err
}

// BenchmarkRecall asks 100,000 memories of 768 dimensions: all of them, those with a tag that
// one in ten has, and those with two tags of which one is rare. BenchmarkDistances in package
// embed holds the same work against the bandwidth of memory.
func BenchmarkRecall(b *testing.B) {
	const n = 100_000
	l := &memorytest.Ledger{}
	m, err := memory.Open(b.Context(), memory.Config{Scope: "bench", Journal: l, Vectors: b.TempDir(), Model: "noise",
		Embed: func(string) (embed.Embedder, error) { return noise{}, nil }})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	notes := make([]memory.Note, n)
	for i := range notes {
		notes[i] = memory.Note{Content: fmt.Sprint("memory ", i), Tags: []string{"all", fmt.Sprint("tenth", i%10), fmt.Sprint("rare", i%1000)}}
	}
	if _, err := m.Remember(b.Context(), notes...); err != nil {
		b.Fatal(err)
	}
	if _, err := m.Reindex(b.Context(), "", memory.Origin{}, nil); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		q    memory.Query
		rows int
	}{
		{"all", memory.Query{}, n},
		{"by a tag that all have", memory.Query{Tags: []string{"all"}}, n},
		{"by a tag of every tenth", memory.Query{Tags: []string{"tenth3"}}, n / 10},
		{"by a rare tag", memory.Query{Tags: []string{"rare7", "all"}, Mode: memory.All}, n / 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(c.rows) * 768 * 4)
			c.q.Text = "memory 17"
			for b.Loop() {
				if hits, err := m.Recall(b.Context(), c.q); err != nil || len(hits) == 0 {
					b.Fatal(len(hits), err)
				}
			}
		})
	}
	b.Run("fold", func(b *testing.B) {
		for b.Loop() {
			if _, err := memory.Fold(l.After(b.Context(), 0)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
