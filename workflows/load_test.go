package workflows_test

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"testing"

	"wf/engine/lang"
	"wf/workflows"
)

// load reads an example; a diagnostic of any severity fails the test.
func load(t *testing.T, name string) (*lang.Program, []byte) {
	t.Helper()
	src, err := workflows.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, diags := lang.Load(src, lang.Options{File: name, Read: workflows.Files.ReadFile})
	if len(diags) > 0 {
		var b bytes.Buffer
		lang.Render(&b, src, diags, false)
		t.Fatalf("%s:\n%s", name, b.String())
	}
	return p, src
}

func TestEveryExampleIsCleanAndTeaches(t *testing.T) {
	examples := 0
	err := fs.WalkDir(workflows.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".yaml" || path.Base(name) == "replies.yaml" {
			return err
		}
		examples++
		t.Run(name, func(t *testing.T) {
			p, src := load(t, name)
			if want := strings.TrimSuffix(path.Base(name), ".yaml"); p.Workflow.Name != want {
				t.Errorf("its name is %q, want that of the file", p.Workflow.Name)
			}
			if p.Workflow.Description == "" {
				t.Error("it has no description")
			}
			if !bytes.HasPrefix(src, []byte("# yaml-language-server: $schema=")) {
				t.Error("its first line does not name the schema for editors")
			}
			if !bytes.Contains(src, []byte("#   wf run workflows/")) {
				t.Error("its comments do not say how to run it")
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if examples < 6 {
		t.Errorf("%d examples were found, want 6 or more", examples)
	}
}
