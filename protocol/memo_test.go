package protocol

import (
	"os"
	"strings"
	"testing"
)

// The key of the two parts that docs/format.md has.
func TestM01AKeyIsAsPublished(t *testing.T) {
	const want = "8ab4c5640d911ae633f0cce23597a3956f93fac266ca1d0527ae3f38da6955ad"
	got := MemoKey([]MemoPart{NewMemoPart("version", []byte("semantics 1, format 2")), NewMemoPart("platform", []byte("linux/amd64"))})
	if got != want || len(got) != MemoKeySize {
		t.Errorf("got %s, want %s", got, want)
	}
	page, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), want) {
		t.Error("docs/format.md has another key")
	}
}

// A name and a value are told apart, and so are the same parts in another order.
func TestM01KeysDiffer(t *testing.T) {
	keys := map[string]bool{}
	for _, parts := range [][]MemoPart{
		nil,
		{NewMemoPart("a", []byte("b"))},
		{NewMemoPart("ab", nil)},
		{NewMemoPart("a", nil), NewMemoPart("b", nil)},
		{NewMemoPart("b", nil), NewMemoPart("a", nil)},
	} {
		keys[MemoKey(parts)] = true
	}
	if len(keys) != 5 {
		t.Errorf("%d keys of 5", len(keys))
	}
}
