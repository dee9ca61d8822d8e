package lang_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"wf/engine/lang"
	"wf/protocol"
)

type hostile struct{ name, src, want string }

func hostileFiles() []hostile {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	return []hostile{
		{"an empty file", "", "1:1: error[WF002]: the file is empty"},
		{"only comments", "# nothing\n", "1:1: error[WF002]: the file is empty"},
		{"a list", "- wf: 1\n", "1:1: error[WF002]: the workflow wants a mapping, got a list"},
		{"a word", "hello\n", "1:1: error[WF002]: the workflow wants a mapping, got a string"},
		{"an alias bomb", bomb, "WF003]: the document has more than 500000 nodes once its aliases are written out"},
		{"an alias in itself", "wf: 1\nroles: &a {b: *a}\n", "2:15: error[WF003]: alias *a stands inside the node it names"},
		{"an alias of nothing", "wf: 1\nroles: *a\n", "2:8: error[WF003]: unknown anchor 'a' referenced"},
		{"10 MB", "wf: 1\nname: " + strings.Repeat("x", 10<<20) + "\n", "1:1: error[WF003]: the file has 10485773 bytes; at most 4194304 are read"},
		{"a tab as indentation", "wf: 1\nroles:\n\ta: {run: ls}\n", "3:1: error[WF003]: a tab in the indentation"},
		{"a tab behind spaces", "wf: 1\nroles:\n  a:\n  \trun: ls\n", "4:3: error[WF003]: a tab in the indentation"},
		{"a key twice", "wf: 1\nname: a\nname: b\nroles: {a: {set: {x: 1}}}\n", "3:1: error[WF003]: key \"name\" is given twice"},
		{"nested deeply", "wf: 1\nx-a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n", "error[WF003]: nested too deep"},
		{"nested deeply by blocks", "wf: 1\nx-a:\n" + deepBlocks(300), "error[WF003]: nested too deep"},
		{"not UTF-8", "wf: 1\nname: a\xffb\n", "2:8: error[WF003]: byte 0xff is not UTF-8"},
		{"UTF-16", "\xff\xfew\x00f\x00", "1:1: error[WF003]: byte 0xff is not UTF-8"},
		{"a control character", "wf: 1\nname: \"a\x1b[2Jb\"\n", "2:9: error[WF003]: control character 0x1b"},
		{"two documents", "wf: 1\nname: a\n---\nwf: 1\n", "3:1: error[WF003]: a second document begins here"},
		{"half of a file", "wf: 1\nroles:\n  a: {run: \"ls", "error[WF003]: found unexpected end of stream"},
		{"an open bracket", "wf: 1\nroles: {a: {run: ls}\n", "error[WF003]: did not find expected ',' or '}'"},
		{"a key that is a list", "wf: 1\n? [a, b]\n: c\n", "2:3: error[WF003]: a key must be text"},
		{"a null key", "wf: 1\n~: c\n", "2:1: error[WF003]: a key must be text"},
		{"a huge number", "wf: 1\nname: t\nroles: {a: {set: {x: 99999999999999999999}}}\n", "3:22: error[WF002]: 99999999999999999999 is not an integer within"},
		{"infinity", "wf: 1\nname: t\nroles: {a: {set: {x: .inf}}}\n", "3:22: error[WF002]: .inf is no JSON number"},
		{"a huge expression", "wf: 1\nname: t\nroles: {a: {set: {x: \"${{ 1" + strings.Repeat(" + 1", 2000) + " }}\"}}}\n", "error[WF020]: "},
		{"20,000 roles", "wf: 1\nroles:\n" + manyRoles(20_000), "3:3: error[WF002]: roles has 20000 entries; at most 10000 are read"},
		{"expressions where none can stand", "wf: 1\nname: t\nroles: {a: {prompt: Go., dir: \"${{ inputs.d }}\"}}\n", "3:31: error[WF020]: roles.a.dir is fixed"},
		{"a merge of text", "wf: 1\n<<: text\n", "2:5: error[WF003]: << needs a mapping"},
		{"null everywhere", "wf:\nname:\nroles:\nedges:\ninputs:\nlimits:\n", "3:7: error[WF002]: roles has no value"},
	}
}

func TestHostileFilesEndInAnErrorWithItsPlace(t *testing.T) {
	for _, c := range hostileFiles() {
		t.Run(c.name, func(t *testing.T) {
			p, ds := lang.Load([]byte(c.src), lang.Options{File: "t.yaml"})
			var b bytes.Buffer
			lang.Render(&b, []byte(c.src), ds, false)
			if p != nil || !strings.Contains(b.String(), c.want) {
				t.Errorf("got %v\n%.2000s\nwant %s", p != nil, b.String(), c.want)
			}
		})
	}
}

func deepBlocks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String()
}

func manyRoles(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  r%d: {wait: 1s}\n", i)
	}
	return b.String()
}

func TestAFileOfFiveThousandRolesIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector, and nothing in it runs at once")
	}
	var b strings.Builder
	b.WriteString("wf: 1\nname: big\ninputs: {n: integer}\ndefaults: {timeout: 1m}\nroles:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "  r%d: {run: 'echo \"$N\"', env: {N: \"${{ inputs.n }}\"}, timeout: 10s}\n", i)
	}
	if p, ds := lang.Load([]byte(b.String()), lang.Options{}); p == nil {
		t.Fatalf("%d diagnostics, the first: %+v", len(ds), ds[0])
	}
}

// FuzzWorkflow holds, for any bytes, that Load does not panic, gives a Program exactly when
// there is no error, places every diagnostic in the file, and that an accepted definition
// encodes, compiles and is stable.
func FuzzWorkflow(f *testing.F) {
	for _, parts := range goodFiles(f) {
		f.Add(parts["good.yaml"])
		f.Add(parts["bad.yaml"])
	}
	for _, h := range hostileFiles() {
		if len(h.src) < 10_000 {
			f.Add([]byte(h.src))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		p, ds := lang.Load(src, lang.Options{File: "f.yaml", Read: func(string) ([]byte, error) { return nil, os.ErrNotExist }})
		if (p == nil) != lang.HasErrors(ds) {
			t.Fatalf("Program is nil: %v, diagnostics: %+v", p == nil, ds)
		}
		lines := bytes.Count(src, []byte("\n")) + bytes.Count(src, []byte("\r")) + 1
		for _, d := range ds {
			if d.Range.Start.Line < 1 || d.Range.Start.Col < 1 || d.Range.Start.Line > lines {
				t.Fatalf("outside of the file: %+v", d)
			}
		}
		lang.Render(&bytes.Buffer{}, src, ds, true)
		if p == nil {
			return
		}
		b, err := p.Block()
		if err != nil {
			t.Fatal(err)
		}
		again, err := lang.Compile(p.Workflow, func(protocol.Link) (*protocol.Workflow, error) { return nil, os.ErrNotExist })
		if err != nil {
			t.Fatal(err)
		}
		if a, err := again.Block(); err != nil || a.Link != b.Link {
			t.Fatal("the definition changed", err)
		}
		answers(p, lang.Scope{})
	})
}
