package embed_test

import (
	"strings"
	"testing"

	"wf/agentkit/embed"
	"wf/agentkit/modeltest"
)

// On a real llama-server: a batch, and a text that is longer than the server reads at once.
func TestALlamaServerEmbeds(t *testing.T) {
	base := modeltest.Llama(t, "--embeddings", "--pooling", "mean")
	o, err := embed.NewOpenAI("local/tiny", "tiny", embed.Config{BaseURL: base})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"The deploy key lives in the vault.", strings.Repeat("word ", 200_000), "The deploy key lives in the vault."}
	vectors, err := o.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if far := embed.Cosine(vectors[0], vectors[2]); len(vectors[0]) != 64 || far > 1e-3 {
		t.Errorf("vectors of %d numbers; the same text is %v away from itself", len(vectors[0]), far)
	}
	query, err := o.EmbedQuery(t.Context(), "word word")
	if err != nil {
		t.Fatal(err)
	}
	if embed.Cosine(query, vectors[1]) > embed.Cosine(query, vectors[0]) {
		t.Error("another text is nearer")
	}
}
