package embed

import (
	"cmp"
	"context"
	_ "embed"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// LexicalName is the model that needs no server. The number is that of the method: another
// method gets another name, since its vectors are not comparable to these.
const LexicalName = "lexical/ngrams-1"

// lexicalDim is the length of its vectors.
const lexicalDim = 1024

// lexicalNear was chosen on questions about facts: those that name the fact lie below it,
// others above 0.8.
const lexicalNear = 0.6

// Lexical embeds a text by the words and the parts of words that stand in it. It is a pure
// function, the same on every machine.
//
// A text is cut into words, names like buildMessages and build_messages into their parts too.
// Each word, and each run of 3 to 5 letters of it with its edges marked, is hashed to a place
// of the vector and to a sign. Longer words weigh more, those that stand in every text hardly
// anything, and a repeated one less each time; which words are rare among the texts at hand is
// not looked at.
type Lexical struct{}

// EmbedDocuments gives the vectors of texts. It cannot fail, but for ctx.
func (Lexical) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(texts)) {
		wg.Go(func() {
			var f features
			for i := next.Add(1) - 1; i < int64(len(texts)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				out[i] = f.vector(texts[i])
			}
		})
	}
	wg.Wait()
	return out, ctx.Err()
}

// EmbedQuery gives the vector of a text.
func (Lexical) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	var f features
	return f.vector(text), nil
}

//go:embed common.txt
var commonText string

// common are words that say little about what a text is about.
var common = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(commonText) {
		m[w] = true
	}
	return m
})

// Weights, and the bounds of what is hashed, in runes.
const (
	commonWeight = 0.1
	gramsWeight  = 0.7 // of all runs of a word together, to the word itself
	gramMin      = 3
	gramMax      = 5
	wordMax      = 64 // of a longer word the beginning counts
)

// features are the hashed words of one text, reused.
type features struct {
	list  []feature
	bytes []byte
	at    []int
}

type feature struct {
	hash   uint64
	weight float64
}

// vector sums the features in the order of their hashes: floats do not add up the same in
// every order.
func (f *features) vector(text string) []float32 {
	f.list = f.list[:0]
	for word := range words(text) {
		f.add(word)
	}
	slices.SortFunc(f.list, func(a, b feature) int {
		if c := cmp.Compare(a.hash, b.hash); c != 0 {
			return c
		}
		return cmp.Compare(a.weight, b.weight)
	})
	sums := make([]float64, lexicalDim)
	for i := 0; i < len(f.list); {
		n := i
		for n < len(f.list) && f.list[n].hash == f.list[i].hash {
			n++
		}
		h, w := f.list[i].hash, float64(f.list[i].weight*math.Sqrt(float64(n-i))) // rounded before it is added
		if h>>63 == 1 {
			w = -w
		}
		sums[h%lexicalDim] += w
		i = n
	}
	out := make([]float32, lexicalDim)
	for i, v := range sums {
		out[i] = float32(v)
	}
	return out
}

// add hashes a word and its parts.
func (f *features) add(word string) {
	n := utf8.RuneCountInString(word)
	weight := 0.5 + float64(min(n, 10))/10
	if common()[word] {
		weight = commonWeight
	}
	f.list = append(f.list, feature{hash('w', []byte(word)), weight})

	f.bytes, f.at = append(f.bytes[:0], '^'), append(f.at[:0], 0)
	for _, r := range word {
		f.at = append(f.at, len(f.bytes))
		f.bytes = utf8.AppendRune(f.bytes, r)
	}
	f.at = append(f.at, len(f.bytes), len(f.bytes)+1)
	f.bytes = append(f.bytes, '$')
	ends := len(f.at) - 1 // runes with the two edges
	grams := 0
	for k := gramMin; k <= gramMax; k++ {
		grams += max(0, ends-k+1)
	}
	if grams == 0 {
		return
	}
	each := weight * gramsWeight / math.Sqrt(float64(grams))
	for k := gramMin; k <= gramMax; k++ {
		for i := 0; i+k <= ends; i++ {
			f.list = append(f.list, feature{hash('g', f.bytes[f.at[i]:f.at[i+k]]), each})
		}
	}
}

// hash is FNV-1a of 64 bits with its bits mixed.
func hash(kind byte, b []byte) uint64 {
	h := uint64(14695981039346656037)
	h = (h ^ uint64(kind)) * 1099511628211
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// words yields the words of a text in lower case. A name of several parts is given whole and
// in parts.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var run []rune
		emit := func() bool {
			defer func() { run = run[:0] }()
			return len(run) == 0 || named(run, yield)
		}
		for _, r := range text {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || r == '_' {
				if len(run) < wordMax {
					run = append(run, r)
				}
				continue
			}
			if !emit() {
				return
			}
		}
		emit()
	}
}

// named yields the parts of a name, and the name itself where there are several.
func named(run []rune, yield func(string) bool) bool {
	lower := make([]rune, 0, len(run))
	parts, start := 0, 0
	part := func(end int) bool {
		from := start
		start = end
		for from < end && run[from] == '_' {
			from++
		}
		for end > from && run[end-1] == '_' {
			end--
		}
		if from == end {
			return true
		}
		parts++
		return yield(strings.ToLower(string(run[from:end])))
	}
	for i, r := range run {
		if r != '_' {
			lower = append(lower, unicode.ToLower(r))
		}
		if i == 0 {
			continue
		}
		before := run[i-1]
		begins := r == '_' || before == '_' ||
			unicode.IsUpper(r) && unicode.IsLower(before) || // aB
			unicode.IsUpper(before) && unicode.IsUpper(r) && i+1 < len(run) && unicode.IsLower(run[i+1]) // AB|Ba
		if begins && !part(i) {
			return false
		}
	}
	if !part(len(run)) {
		return false
	}
	return parts < 2 || yield(string(lower))
}
