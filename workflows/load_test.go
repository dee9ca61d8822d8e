package workflows_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"regexp"
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
		if err != nil || path.Ext(name) != ".yaml" || strings.HasSuffix(name, "replies.yaml") {
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
	if examples < 18 {
		t.Errorf("%d examples were found, want 18 or more", examples)
	}
}

// An example that wf init writes is whole: it loads where its files lie in one directory, and its
// comments name no other.
func TestEveryExampleIsWholeInADirectoryOfItsOwn(t *testing.T) {
	for _, e := range workflows.Examples {
		files, err := e.Load("./.wf/schema.json")
		if err != nil {
			t.Fatal(err)
		}
		written := map[string][]byte{}
		for _, f := range files {
			if written[f.Name] != nil {
				t.Errorf("%s: two files are called %s", e.Name, f.Name)
			}
			written[f.Name] = f.Content
			if bytes.Contains(f.Content, []byte("workflows/")) || bytes.Contains(f.Content, []byte("../schema.json")) {
				t.Errorf("%s: %s names a directory that is not there", e.Name, f.Name)
			}
		}
		p, diags := lang.Load(files[0].Content, lang.Options{File: files[0].Name, Read: func(name string) ([]byte, error) {
			if b := written[name]; b != nil {
				return b, nil
			}
			return nil, fs.ErrNotExist
		}})
		if p == nil || p.Workflow.Name != e.Name {
			t.Errorf("%s: %v", e.Name, diags)
		}
	}
}

// The page of the cookbook names every workflow of it with its command, and wf init offers each.
func TestThePageOfTheCookbookNamesEveryWorkflow(t *testing.T) {
	page, err := os.ReadFile("../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(workflows.Files, "cookbook/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]bool{}
	for _, e := range workflows.Examples {
		files, err := e.Load(".")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			offered["cookbook/"+f.Name] = true
		}
	}
	for _, name := range names {
		if !offered[name] {
			t.Errorf("wf init offers no %s", name)
		}
		if !bytes.Contains(page, []byte("](../workflows/"+name+")")) && !strings.HasSuffix(name, ".replies.yaml") {
			t.Errorf("the page has no link to %s", name)
		}
		if !bytes.Contains(page, []byte("wf run workflows/"+name)) && !strings.HasSuffix(name, ".replies.yaml") && name != "cookbook/build-one.yaml" {
			t.Errorf("the page has no command for %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^wf run (workflows/)?(\S+\.yaml)`).FindAllSubmatch(page, -1) {
		if _, err := fs.Stat(workflows.Files, string(m[2])); err != nil {
			t.Errorf("the page runs %s, which is not there", m[2])
		}
	}
	if n := bytes.Count(page, []byte("\n## ")); n != 12 {
		t.Errorf("the page has %d workflows, want 12", n)
	}
}
