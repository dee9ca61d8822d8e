package cas

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ipfs/go-cid"
	"pgregory.net/rapid"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

func anyLink(t *rapid.T, label string) protocol.Link {
	data := rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, label)
	switch rapid.IntRange(0, 2).Draw(t, label+" codec") {
	case 0:
		return protocol.Link{}
	case 1:
		return Raw(data).Link
	}
	return linkTo(cid.DagCBOR, data)
}

func anyLinks(t *rapid.T, label string) []protocol.Link {
	n := rapid.IntRange(0, 3).Draw(t, label+" count")
	if n == 0 {
		return nil
	}
	links := make([]protocol.Link, n)
	for i := range links {
		links[i] = linkTo(cid.DagCBOR, fmt.Append(nil, label, i))
	}
	return links
}

func anyStep(t *rapid.T) protocol.StepRecord {
	text := rapid.StringN(0, 40, -1)
	r := protocol.StepRecord{
		Kind: protocol.KindStep, V: 1,
		Start:      linkTo(cid.DagCBOR, []byte("start")),
		Parents:    anyLinks(t, "parents"),
		Role:       text.Draw(t, "role"),
		Visit:      rapid.IntRange(1, 1<<40).Draw(t, "visit"),
		Edge:       rapid.IntRange(0, 500).Draw(t, "edge"),
		Via:        rapid.SampledFrom([]protocol.Via{protocol.ViaEdge, protocol.ViaLimit, protocol.ViaStart}).Draw(t, "via"),
		EdgePrompt: text.Draw(t, "prompt"),
		Resumes:    anyLink(t, "resumes"),
		Tools:      anyLink(t, "tools"),
		Inject:     anyLink(t, "inject"),
		Output:     anyLink(t, "output"),
		Data:       anyLink(t, "data"),
		Status:     rapid.SampledFrom([]protocol.StepStatus{protocol.StepOK, protocol.StepFailed}).Draw(t, "status"),
		Error:      anyLink(t, "error"),
	}
	if rapid.Bool().Draw(t, "has item") {
		r.Item = &protocol.Item{Index: rapid.IntRange(0, 99).Draw(t, "index"), Value: anyLink(t, "value")}
	}
	return r
}

var linksEqual = cmp.Comparer(func(a, b protocol.Link) bool { return a == b })

func TestDecodeUndoesEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyStep(t)
		b, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		var got protocol.StepRecord
		if err := Decode(b.Data, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, linksEqual); d != "" {
			t.Fatal(d)
		}
		again, err := Encode(&got)
		if err != nil || again.Link != b.Link {
			t.Fatalf("encoded again: %s, %v; want %s", again.Link, err, b.Link)
		}
	})
}

func TestEveryFlippedByteOfABlockIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := Encode(anyStep(t))
		if err != nil {
			t.Fatal(err)
		}
		flip := byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		for i := range b.Data {
			b.Data[i] ^= flip
			err := Check(b.Link, b.Data)
			var m *Mismatch
			if !errors.Is(err, protocol.ErrCorrupt) || !errors.As(err, &m) || m.Expected != b.Link || m.Actual == b.Link {
				t.Fatalf("byte %d flipped: %v", i, err)
			}
			b.Data[i] ^= flip
		}
	})
}

func TestABareCIDIsRefusedWhereverItHides(t *testing.T) {
	c := Raw(nil).Link.CID()
	type inner struct{ C any }
	for _, v := range []any{c, &c, []cid.Cid{c}, map[string]cid.Cid{"a": c}, map[string]any{"a": []any{1, c}}, inner{c}, []inner{{inner{&c}}}} {
		if b, err := Encode(v); !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("Encode(%T) = % x, %v", v, b.Data, err)
		}
	}
	for _, v := range []any{Raw(nil).Link, map[string]any{"a": []any{Raw(nil).Link, nil}}, inner{}, (*inner)(nil)} {
		if _, err := Encode(v); err != nil {
			t.Errorf("Encode(%T): %v", v, err)
		}
	}
}

func TestEncodeRefusesWhatTheEncoderLetsThrough(t *testing.T) {
	for name, v := range map[string]any{
		"float32": float32(1.5), "integer keys": map[int]string{1: "a"}, "bad UTF-8": "\xff",
		"bad UTF-8 in a key": map[string]int{"\xff": 1},
	} {
		if b, err := Encode(v); !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("%s: % x, %v", name, b.Data, err)
		}
	}
}

func TestPutOfAnUnknownCodecIsUsage(t *testing.T) {
	if _, err := Put("dag-pb", nil); !errors.Is(err, protocol.ErrUsage) {
		t.Errorf("err = %v", err)
	}
}

func TestPutSaysWhereBytesAreNoBlock(t *testing.T) {
	for codec, c := range map[string]struct{ data, want string }{
		"dag-cbor": {"\x81\xff", "byte 1: " + string(dagcbor.Indefinite)},
		"dag-json": {`{"a":1,"a":2}`, `byte 13: ` + string(dagcbor.KeyTwice) + ` ("a")`},
	} {
		_, err := Put(codec, []byte(c.data))
		var f *dagcbor.Fault
		if !errors.Is(err, protocol.ErrInvalidBlock) || !errors.As(err, &f) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", codec, err, c.want)
		}
	}
	if _, err := ToJSON([]byte{0xff}); !errors.Is(err, protocol.ErrInvalidBlock) {
		t.Errorf("ToJSON: %v", err)
	}
}

// blockMap is the smallest protocol.Blocks.
type blockMap map[protocol.Link][]byte

func (m blockMap) Block(_ context.Context, l protocol.Link) ([]byte, error) {
	b, ok := m[l]
	if !ok {
		return nil, fmt.Errorf("block %s: %w", l, protocol.ErrNotFound)
	}
	return b, Check(l, b)
}

func TestPayloadsOfEveryLengthReadBack(t *testing.T) {
	const mib = protocol.ChunkSize
	for _, n := range []int{0, 1, mib, mib + 1, 2 * mib, 5*mib/2 + 3} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i >> 10)
		}
		root, blocks := Payload(data)
		have := blockMap{}
		for _, b := range blocks {
			if len(b.Data) > mib {
				t.Errorf("%d bytes: a block of %d", n, len(b.Data))
			}
			have[b.Link] = b.Data
		}
		if blocks[len(blocks)-1].Link != root {
			t.Errorf("%d bytes: the root is not the last block", n)
		}
		got, err := protocol.ReadPayload(t.Context(), have, root)
		if err != nil || string(got) != string(data) {
			t.Errorf("%d bytes: read %d, %v", n, len(got), err)
		}
		if len(blocks) > 1 {
			delete(have, blocks[0].Link)
			if _, err := protocol.ReadPayload(t.Context(), have, root); !errors.Is(err, protocol.ErrNotFound) {
				t.Errorf("without its first chunk: %v", err)
			}
		}
	}
}

func TestChunksThatLieAboutTheirSizeAreCorrupt(t *testing.T) {
	part := Raw([]byte("abc"))
	for _, size := range []int64{-1, 2, 4, 1 << 50} {
		top, err := Encode(protocol.Chunks{Kind: protocol.KindChunks, V: 1, Size: size, Parts: []protocol.Link{part.Link}})
		if err != nil {
			t.Fatal(err)
		}
		have := blockMap{top.Link: top.Data, part.Link: part.Data}
		if _, err := protocol.ReadPayload(t.Context(), have, top.Link); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	start := Raw([]byte("x")).Link
	r := protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start, Parents: []protocol.Link{start}, Role: "coder",
		Visit: 2, Via: protocol.ViaEdge, EdgePrompt: "The tests of ./... fail.", Resumes: start, Output: start, Data: start, Status: protocol.StepOK}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(&r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	start := Raw([]byte("x")).Link
	r := must(Encode(protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start, Parents: []protocol.Link{start}, Role: "coder",
		Visit: 2, Via: protocol.ViaEdge, EdgePrompt: "The tests of ./... fail.", Resumes: start, Output: start, Data: start, Status: protocol.StepOK}))
	b.ReportAllocs()
	b.SetBytes(int64(len(r.Data)))
	for b.Loop() {
		if err := profile(r.Data); err != nil {
			b.Fatal(err)
		}
	}
}
