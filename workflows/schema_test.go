package workflows_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"wf/engine/lang"
)

var update = flag.Bool("update", false, "write the schemas anew")

func TestTheSchemasBesideTheExamplesAreThoseOfTheLanguage(t *testing.T) {
	for file, schema := range map[string][]byte{"schema.json": lang.JSONSchema(), "suite.schema.json": lang.SuiteSchema()} {
		want := append(bytes.TrimRight(schema, "\n"), '\n')
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what wf schema prints; write it anew: go test ./workflows -run Schema -update", file)
		}
	}
}
