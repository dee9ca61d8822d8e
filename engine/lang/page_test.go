package lang_test

import (
	"os"
	"path/filepath"
	"testing"

	"wf/engine/lang"
)

func TestThePageOfTheLanguageIsWhatTheGrammarGives(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "language.md")
	if *update {
		if err := os.WriteFile(file, []byte(lang.Page()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != lang.Page() {
		t.Error("docs/language.md is not what the grammar and the guides give; write it anew: make update")
	}
}
