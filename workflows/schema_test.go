package workflows_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"wf/engine/lang"
	"wf/workflows"
)

var update = flag.Bool("update", false, "write schema.json anew")

func TestTheSchemaBesideTheExamplesIsThatOfTheLanguage(t *testing.T) {
	want := append(bytes.TrimRight(lang.JSONSchema(), "\n"), '\n')
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := workflows.Files.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("schema.json is not what wf schema prints; write it anew: go test ./workflows -run Schema -update")
	}
}
