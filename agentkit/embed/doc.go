// Package embed turns texts into vectors, and keeps them.
//
//	Open(name) ─► Embedder ─► vectors ─► Table, by Key of model and text ─► Distances
//
// The seam is langchaingo's embeddings.Embedder, so any of its embedders plugs in. Its
// NewEmbedder is not used: it changes the texts it is given.
//
// # Words
//
// A vector is a list of float32, a direction; its length says nothing. The distance of two
// vectors is 1 − cos of their angle: 0 for the same direction, 1 for unrelated, 2 for
// opposite. A Table holds the vectors of one model, each under the hash of model and text: a
// text is embedded once, however often it is kept.
//
// # Models
//
//	lexical/ngrams-1   here, without a server: which words and word parts two texts share
//	openai/MODEL       an OpenAI-compatible server (OPENAI_BASE_URL, OPENAI_API_KEY)
//
// Distances of one model are comparable to themselves alone. The lexical one knows no meaning:
// "car" and "automobile" are unrelated to it.
//
// # Not promised
//
// That a Table survives. It is derived: deleted or damaged, it is made again from the texts.
package embed

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/embeddings"

	"wf/agentkit/model"
	"wf/protocol"
)

// Embedder is what embeds: langchaingo's. EmbedDocuments gives one vector for each text, in
// order, all of one length.
type Embedder = embeddings.Embedder

// Open finds an embedder by its whole name. A name with an unknown prefix is a *model.Error
// of class unavailable that says what to do.
func Open(name string) (Embedder, error) {
	switch prefix, _, _ := strings.Cut(name, "/"); {
	case name == "" || name == LexicalName:
		return Lexical{}, nil
	case prefix == "openai":
		return openByEnvironment(name)
	}
	return nil, &model.Error{Class: model.Unavailable, Err: protocol.ErrModel,
		Message: fmt.Sprintf("no provider for the embedding model %q. Fixes: name %s, which needs no server; or openai/MODEL with "+
			"OPENAI_BASE_URL set, for example to a llama-server or Ollama; or PROVIDER/MODEL of a provider in .wf/config.yaml", name, LexicalName)}
}

// Near is how far a text may be from what is asked for to count as close, by default:
// 0.3, and more for the lexical model: by it, texts are close only when they share most words.
func Near(name string) float64 {
	if name == "" || name == LexicalName {
		return lexicalNear
	}
	return 0.3
}

// A Key names the vector of a text: the hash of the model and of the text's parts.
type Key [sha256.Size]byte

// KeyOf is the key of a text that consists of parts.
func KeyOf(name string, parts ...string) Key {
	b := make([]byte, 0, 512)
	b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	for _, s := range parts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return sha256.Sum256(b)
}
