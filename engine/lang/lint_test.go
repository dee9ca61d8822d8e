package lang_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"wf/engine/lang"
)

var update = flag.Bool("update", false, "rewrite the wanted diagnostics")

// TestW14EveryCodeHasABadFileAndAGoodTwin holds, for each code, that the bad file of its
// archive gives exactly the wanted diagnostics, the code among them, and its twin neither an
// error nor that warning.
func TestW14EveryCodeHasABadFileAndAGoodTwin(t *testing.T) {
	files, err := filepath.Glob("testdata/lint/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("archives: %d, %v", len(files), err)
	}
	for _, file := range files {
		code := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(code, func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string][]byte{}
			for _, f := range ar.Files {
				parts[f.Name] = f.Data
			}
			load := func(name string) []lang.Diagnostic {
				p, ds := lang.Load(parts[name], offering(lang.Options{File: name, Read: reader(parts)}))
				if (p == nil) != lang.HasErrors(ds) {
					t.Errorf("%s: Program is nil: %v, errors: %v", name, p == nil, lang.HasErrors(ds))
				}
				return ds
			}
			bad := load("bad.yaml")
			found := false
			for _, d := range bad {
				found = found || d.Code == code
			}
			if !found {
				t.Errorf("bad.yaml does not give %s", code)
			}
			var got bytes.Buffer
			lang.Render(&got, parts["bad.yaml"], bad, false)
			if *update {
				for i := range ar.Files {
					if ar.Files[i].Name == "want" {
						ar.Files[i].Data = got.Bytes()
					}
				}
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(parts["want"]), got.String()); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			for _, d := range load("good.yaml") {
				if d.Severity == lang.SeverityError || d.Code == code {
					t.Errorf("good.yaml:%d:%d: %s: %s", d.Range.Start.Line, d.Range.Start.Col, d.Code, d.Message)
				}
			}
		})
	}
}

func reader(parts map[string][]byte) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if b, ok := parts[path]; ok {
			return b, nil
		}
		return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
	}
}

// offering adds the tools and providers that a program has.
func offering(o lang.Options) lang.Options {
	o.Tools = []string{"edit_file", "list_files", "read_file", "search", "shell", "write_file"}
	o.MemoryTools = []string{"recall", "remember"}
	o.Providers = []string{"anthropic", "openai", "script", "tape"}
	return o
}
