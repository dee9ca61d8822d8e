package lang_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/engine/lang"
	"wf/protocol"
)

// TestADefinitionIsReloaded brings the definitions of all good files back by Reload.
func TestADefinitionIsReloaded(t *testing.T) {
	all := goodFiles(t)
	examples, _ := filepath.Glob("../../workflows/*/*.yaml")
	more, _ := filepath.Glob("../../workflows/*.yaml")
	for _, path := range append(examples, more...) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(src, []byte("\nroles:")) {
			all[path] = map[string][]byte{"good.yaml": src}
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d files", len(all))
	}
	for name, parts := range all {
		p, _ := lang.Load(parts["good.yaml"], lang.Options{File: "good.yaml", Read: reader(parts)})
		if p == nil {
			if strings.Contains(name, "workflows/") {
				continue // it has sub-workflows beside it
			}
			t.Fatalf("%s does not load", name)
		}
		again, ds := lang.Reload(p.Workflow, func(l protocol.Link) (*protocol.Workflow, error) { return subOf(p, l), nil }, lang.Options{})
		if again == nil {
			t.Errorf("%s: %v", name, ds)
		}
	}
}

// subOf is the definition of a sub-workflow at any depth.
func subOf(p *lang.Program, l protocol.Link) *protocol.Workflow {
	if c := p.Children[l]; c != nil {
		return c.Workflow
	}
	for _, c := range p.Children {
		if w := subOf(c, l); w != nil {
			return w
		}
	}
	return nil
}

// A definition with a fault that no file could have is not reloaded, and says which.
func TestAFaultIsFoundInADefinition(t *testing.T) {
	p, ds := lang.Load([]byte("wf: 1\nroles: {a: {set: {x: 1}}, b: {set: {y: \"${{ steps.a.output.x }}\"}}}\n"), lang.Options{})
	if p == nil {
		t.Fatal(ds)
	}
	w := *p.Workflow
	w.Roles = w.Roles[:1]
	if again, ds := lang.Reload(&w, nil, lang.Options{}); again != nil || !strings.Contains(ds[0].Message, `"b"`) {
		t.Errorf("an edge to no role: %v", ds)
	}
	w = *p.Workflow
	w.Roles = append([]protocol.Role{}, w.Roles...)
	w.Roles[0].Set = []protocol.NamedTemplate{{Name: "z", JSON: "1"}}
	if again, ds := lang.Reload(&w, nil, lang.Options{}); again != nil || !strings.Contains(ds[0].Message, "x") {
		t.Errorf("a field that there is not: %v", ds)
	}
	w = *p.Workflow
	w.V = 7
	if again, ds := lang.Reload(&w, nil, lang.Options{}); again != nil || !strings.Contains(ds[0].Message, "no words") {
		t.Errorf("a version that the language does not have: %v", ds)
	}
}
