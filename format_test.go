package wf_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// What docs/format.md says is enough to come to the digest of every prompt of the goldens. The
// renderer in renderer_test.go is written from that page alone: nothing of wf is behind it.
func TestAnotherRendererComesToTheSameDigests(t *testing.T) {
	archives, err := filepath.Glob("testdata/golden/*/f*/run.car.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	page, err := os.ReadFile("docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	prompts := map[int64]int{} // by format
	for _, name := range archives {
		a := readArchive(t, name)
		for _, root := range a.roots {
			p := newPublished(t, a, string(page))
			for _, e := range a.journal(root) {
				if want := p.take(e); want != "" {
					prompts[p.format]++
					if got := p.digest(); got != want {
						t.Errorf("%s: %v has a prompt of digest %s; by the page it is %s:\n%s", name, e["step"], want, got, p.bytes())
					}
				}
			}
		}
	}
	if prompts[1] < 20 || prompts[2] < 20 {
		t.Errorf("the goldens hold %v prompts of each format", prompts)
	}
}

// record is a block of DAG-CBOR.
type record = map[string]any

// archive is a CAR file: blocks by the bytes of their CIDs.
type archive struct {
	t      *testing.T
	blocks map[string][]byte
	roots  []string
}

func readArchive(t *testing.T, name string) *archive {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{t: t, blocks: map[string][]byte{}}
	section := func() []byte {
		n, size := uvarint(all)
		part := all[size : size+n]
		all = all[size+n:]
		return part
	}
	for _, root := range a.decode(section())["roots"].([]any) {
		a.roots = append(a.roots, link(root))
	}
	for len(all) > 0 {
		part := section()
		a.blocks[string(part[:36])] = part[36:]
	}
	return a
}

func uvarint(b []byte) (n, size int) {
	for shift := 0; ; shift += 7 {
		n |= int(b[size]&0x7f) << shift
		if size++; b[size-1] < 0x80 {
			return n, size
		}
	}
}

func (a *archive) decode(b []byte) record {
	a.t.Helper()
	var v any
	if err := cbor.Unmarshal(b, &v); err != nil {
		a.t.Fatal(err)
	}
	m, ok := textKeys(v).(record)
	if !ok {
		a.t.Fatalf("a block is %T", v)
	}
	return m
}

// textKeys gives maps the keys that all of them have.
func textKeys(v any) any {
	switch v := v.(type) {
	case map[any]any:
		m := record{}
		for k, x := range v {
			m[k.(string)] = textKeys(x)
		}
		return m
	case []any:
		for i := range v {
			v[i] = textKeys(v[i])
		}
	}
	return v
}

// link is the binary CID of a link, "" for null.
func link(v any) string {
	tag, ok := v.(cbor.Tag)
	if !ok || tag.Number != 42 {
		return ""
	}
	return string(tag.Content.([]byte)[1:])
}

func (a *archive) record(cid string) record {
	a.t.Helper()
	b, ok := a.blocks[cid]
	if !ok {
		a.t.Fatalf("the archive lacks a block %x", cid)
	}
	return a.decode(b)
}

// text is what a Text or a link to a payload stands for, "" for null.
func (a *archive) text(v any) string {
	a.t.Helper()
	if s, ok := v.(string); ok {
		return s
	}
	cid := link(v)
	switch {
	case cid == "":
		return ""
	case cid[1] == 0x55:
		return string(a.blocks[cid])
	}
	var b strings.Builder
	for _, part := range a.record(cid)["parts"].([]any) {
		b.Write(a.blocks[link(part)])
	}
	return b.String()
}

// journal is the events that a root leads to, the oldest first; none for a root that is no event.
func (a *archive) journal(root string) []record {
	var events []record
	for cid := root; cid != ""; {
		e := a.record(cid)
		if e["kind"] != "event" {
			break
		}
		events = append(events, e)
		cid = link(e["prev"])
	}
	for i, j := 0, len(events)-1; i < j; i, j = i+1, j-1 {
		events[i], events[j] = events[j], events[i]
	}
	return events
}

// member is a member of JSON, its value as it is written.
type member struct {
	name  string
	value string
}

// members of a JSON object, in their order; ok is false for what is none.
func members(text string) (out []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if t, err := d.Token(); err != nil || fmt.Sprint(t) != "{" {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		var raw json.RawMessage
		if err != nil || d.Decode(&raw) != nil {
			return nil, false
		}
		out = append(out, member{name.(string), string(raw)})
	}
	return out, true
}
