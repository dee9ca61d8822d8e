package embed

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func lexical(t testing.TB, text string) []float32 {
	t.Helper()
	v, err := Lexical{}.EmbedQuery(t.Context(), text)
	if err != nil || len(v) != lexicalDim {
		t.Fatal(len(v), err)
	}
	return v
}

// The vectors of this version of the method, for ever: a table holds them.
func TestTheLexicalModelIsTheSameOnEveryMachine(t *testing.T) {
	v := lexical(t, "Wie groß ist buildMessages_v1 in HTTPServer? 日本語 naïve naive run run run")
	sum := sha256.Sum256(bytesOf(v))
	if got := hex.EncodeToString(sum[:8]); got != "698bf146b0729588" {
		t.Errorf("the method changed (%s): give it another name", got)
	}
}

func TestWordsOfAText(t *testing.T) {
	for text, want := range map[string]string{
		"Hello, World":        "hello world",
		"buildMessages(x)":    "build messages buildmessages x",
		"build_messages":      "build messages buildmessages",
		"HTTPServer2 v1":      "http server2 httpserver2 v1",
		"__init__ _ a":        "init a",
		"ÜberGröße":           "über größe übergröße",
		"don't \x00\xff stop": "don t stop",
		"":                    "",
	} {
		var got []string
		for w := range words(text) {
			got = append(got, w)
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestWhatIsCloseByWords(t *testing.T) {
	fact := lexical(t, "The deploy key lives in the vault at path ops/deploy.")
	far := func(text string) float64 { return distance(dot(unit(fact), unit(lexical(t, text)))) }
	for _, near := range []string{"where is the deploy key", "Which path in the vault has the key for deploys?", "deploy keys in vaults"} {
		if d := far(near); d > Near(LexicalName) {
			t.Errorf("%q is %v away", near, d)
		}
	}
	for _, other := range []string{"Ada prefers tabs over spaces.", "what time is lunch", "the of and is", ""} {
		if d := far(other); d < 0.8 {
			t.Errorf("%q is only %v away", other, d)
		}
	}
}

func TestTheDotProductIsTheSameWithAndWithoutWideRegisters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(rt, "n")
		a := rapid.SliceOfN(rapid.Float32Range(-1e3, 1e3), n, n).Draw(rt, "a")
		b := rapid.SliceOfN(rapid.Float32Range(-1e3, 1e3), n, n).Draw(rt, "b")
		m := n &^ 7
		if got, want := sums(a[:m], b[:m]), plainSums(a[:m], b[:m]); got != want {
			rt.Fatalf("%v, want %v", got, want)
		}
		exact, scale := 0.0, 1.0
		for i := range a {
			exact += float64(a[i]) * float64(b[i])
			scale += math.Abs(float64(a[i]) * float64(b[i]))
		}
		if got := float64(dot(a, b)); math.Abs(got-exact) > 1e-4*scale {
			rt.Fatalf("%v, want %v", got, exact)
		}
	})
}
