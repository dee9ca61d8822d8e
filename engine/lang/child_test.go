package lang_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"wf/engine/lang"
)

func family(files map[string]string) (*lang.Program, string) {
	parts := map[string][]byte{}
	for name, src := range files {
		parts[name] = []byte("wf: 1\n" + src)
	}
	p, ds := lang.Load(parts["top/main.yaml"], lang.Options{File: "top/main.yaml", Read: reader(parts)})
	var b bytes.Buffer
	lang.Render(&b, parts["top/main.yaml"], ds, false)
	return p, b.String()
}

func TestSubWorkflowsAreFoundBesideTheFileThatNamesThem(t *testing.T) {
	p, out := family(map[string]string{
		"top/main.yaml": "roles: {a: {workflow: sub/a.yaml}, b: {workflow: ../b.yaml}, c: {workflow: sub/a.yaml}}\n",
		"top/sub/a.yaml": "roles: {x: {workflow: ../../b.yaml}}\n" +
			"outputs: {n: \"${{ steps.x.output.n }}\"}\n",
		"b.yaml": "roles: {x: {set: {n: 1}}}\noutputs: {n: \"${{ output.n }}\"}\n",
	})
	if p == nil {
		t.Fatal(out)
	}
	blocks, err := p.AllBlocks()
	if err != nil || len(blocks) != 3 || len(p.Children) != 2 {
		t.Fatalf("%d blocks, %d children, %v", len(blocks), len(p.Children), err)
	}
	if top, err := p.Block(); err != nil || blocks[2].Link != top.Link {
		t.Error("the workflow itself is not the last block")
	}
	a, _ := p.Workflow.RoleNamed("a")
	c, _ := p.Workflow.RoleNamed("c")
	if a.Workflow != c.Workflow || p.Children[a.Workflow].Workflow.Name != "a" {
		t.Error("one file became two definitions")
	}
}

func TestErrorsOfASubWorkflowAreShownInItsOwnText(t *testing.T) {
	p, out := family(map[string]string{
		"top/main.yaml": "roles: {a: {workflow: a.yaml}}\n",
		"top/a.yaml":    "roles: {x: {rum: ls}}\n",
	})
	for _, want := range []string{
		"top/main.yaml:2:23: error[WF031]: sub-workflow top/a.yaml has errors\n",
		"top/a.yaml:2:13: error[WF001]: unknown key \"rum\" in roles.x\n  |\n2 | roles: {x: {rum: ls}}\n  |             ^^^ did you mean \"run\"?\n",
		"3 errors, 0 warnings in 2 files\n",
	} {
		if p != nil || !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant\n%s", out, want)
		}
	}
}

// A workflow may have been written by a stranger, and names what it likes.
func TestWhatIsWrongInAFileElsewhereIsNotTold(t *testing.T) {
	read := func(string) ([]byte, error) { return []byte("password: hunter2\n"), nil }
	src := []byte("wf: 1\nroles: {a: {workflow: ../../elsewhere}}\n")
	p, ds := lang.Load(src, lang.Options{File: "top/main.yaml", Read: read, Apart: func(file string) bool { return file == "../elsewhere" }})
	var out strings.Builder
	lang.Render(&out, src, ds, false)
	if p != nil || strings.Contains(out.String(), "password") || !strings.Contains(out.String(), "sub-workflow ../elsewhere has errors") || !strings.Contains(out.String(), "wf validate ../elsewhere") {
		t.Error(out.String())
	}
}

func TestSubWorkflowsDoNotNestForEver(t *testing.T) {
	files := map[string]string{"top/main.yaml": "roles: {a: {workflow: f0.yaml}}\n"}
	for i := range 40 {
		files[fmt.Sprintf("top/f%d.yaml", i)] = fmt.Sprintf("roles: {a: {workflow: f%d.yaml}}\n", i+1)
	}
	p, out := family(files)
	if p != nil || !strings.Contains(out, "sub-workflows nest deeper than 32") {
		t.Error(out)
	}
	if p, ds := lang.Load([]byte("wf: 1\nroles: {a: {workflow: b.yaml}}"), lang.Options{}); p != nil || !strings.Contains(ds[0].Message, "no files can be read here") {
		t.Errorf("%+v", ds)
	}
}
