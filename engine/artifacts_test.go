package engine_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/cas"
	"wf/protocol"
	"wf/protocol/tree"
)

// keptBy lists what a step keeps, as path=content.
func (b *bench) keptBy(v []string, root *string) []string {
	b.t.Helper()
	if root == nil {
		return nil
	}
	l, err := protocol.ParseLink(*root)
	if err != nil {
		b.t.Fatal(err)
	}
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(context.Background(), l) }
	for it, err := range tree.Walk(read, l) {
		if err != nil {
			b.t.Fatal(err)
		}
		v = append(v, it.Path+" "+string(it.Mode)+" "+it.Why)
	}
	return v
}

// A report of what failed is wanted most: artifacts are kept of a visit that fails for good, and of none that is tried again.
func TestO06bArtifactsAreKeptOfAVisitThatEnded(t *testing.T) {
	t.Setenv("TOKEN_OF_TEST", "hunter2-hunter2")
	b := newBench(t)
	_, v := b.run(`
wf: 1
name: kept
secrets: [TOKEN_OF_TEST]
roles:
  build: {run: 'mkdir -p dist/sub; echo 1 > dist/a; echo 2 > dist/sub/b.map; ln -s /etc/passwd dist/l; printf "x%s" hunter2-hunter2 > dist/key; echo no > other', artifacts: [dist/**, "!**/*.map"]}
  test: {run: 'echo "$WF_ATTEMPT" > report; exit 1', retry: {attempts: 2, delay: 1ms}, artifacts: [report]}
  none: {run: "true", artifacts: [nothing]}
edges:
  - {from: build, to: test}
  - {from: test, to: none, on: failure}
  - {from: none, to: END}
`, nil)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	want := []string{"dist/a file ,dist/key omitted secret,dist/l link ", "report file ", ""}
	for i, s := range v.Steps {
		if got := strings.Join(b.keptBy(nil, s.Artifacts), ","); got != want[i] {
			t.Errorf("%s keeps %q, want %q", s.ID, got, want[i])
		}
	}
	b.sound(v.ID)
}

func TestO06bBeyondALimitTheVisitFails(t *testing.T) {
	for limit, what := range map[string]string{"max_files: 2": "more than 2 files", "max_size: 1KB": "big: a file of 2000 bytes", "max_total: 2KB": "more than 2048 bytes"} {
		b := newBench(t)
		_, v := b.run(`
wf: 1
name: limits
roles: {a: {run: 'head -c 2000 /dev/zero > big; head -c 900 /dev/zero > c; echo > d', artifacts: {paths: ["*"], `+limit+`}}}
`, nil)
		if v.Status == protocol.Done || v.Steps[0].Error == nil || v.Steps[0].Error.Code != "artifacts_limit" || !strings.Contains(v.Steps[0].Error.Message, what) {
			t.Errorf("%s: %s, %+v", limit, v.Status, v.Steps[0].Error)
		}
	}
}

// More than a batch is stored ahead of the record, and a collection keeps it.
func TestO06bManyBlocksAreStoredInBatches(t *testing.T) {
	b := newBench(t)
	big := bytes.Repeat([]byte("0123456789abcdef\n"), 600<<10)
	for i := range len(big) / 1024 {
		big[i*1024] = byte(i)
		big[i*1024+1] = byte(i >> 8)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "big"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	_, v := b.run("wf: 1\nname: big\nroles: {a: {run: 'true', artifacts: [big]}}\n", nil)
	if v.Status != protocol.Done || v.Steps[0].Artifacts == nil {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	if _, err := cas.GC(t.Context(), inDir(b.e), cas.GCOptions{}); err != nil { // nothing keeps it away any more
		t.Fatal(err)
	}
	root, _ := protocol.ParseLink(*v.Steps[0].Artifacts)
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(t.Context(), l) }
	e, err := tree.Find(read, root, "big")
	if err != nil {
		t.Fatal(err)
	}
	r, err := tree.Open(read, e)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := got.ReadFrom(r); err != nil || !bytes.Equal(got.Bytes(), big) {
		t.Errorf("%d of %d bytes, %v", got.Len(), len(big), err)
	}
	b.sound(v.ID)
}
