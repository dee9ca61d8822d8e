package cas

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"wf/protocol"
)

func readCAR(data []byte) (roots []protocol.Link, blocks []Block, err error) {
	c, err := newCARReader(bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	for {
		b, _, err := c.next()
		if err == io.EOF {
			return c.roots, blocks, nil
		}
		if err != nil {
			return c.roots, blocks, err
		}
		blocks = append(blocks, b)
	}
}

func TestCARFixturesReadAsTheirDescriptionSays(t *testing.T) {
	for _, name := range []string{"carv1-basic", "carv2-basic"} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(vectors(t, "car-fixtures/specs/transport/car/fixture/"+name), name)
			data, err := os.ReadFile(base + ".car")
			if err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(base + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Blocks []struct {
					CID         protocol.Link
					Offset      int64
					BlockLength int
				}
				Header struct{ Roots []protocol.Link }
			}
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			c, err := newCARReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if len(want.Header.Roots) != len(c.roots) {
				t.Errorf("%d roots, want %d", len(c.roots), len(want.Header.Roots))
			}
			for i, w := range want.Blocks {
				b, at, err := c.next()
				if err != nil || b.Link != w.CID || at != w.Offset || len(b.Data) != w.BlockLength {
					t.Errorf("block %d: %s at %d, %d bytes, %v; want %+v", i, b.Link, at, len(b.Data), err, w)
				}
			}
			if _, _, err := c.next(); err != io.EOF {
				t.Errorf("after the last block: %v", err)
			}
		})
	}
}

// carOf is an archive of blocks.
func carOf(roots []protocol.Link, blocks ...Block) []byte {
	out := must(beginCAR(roots))
	for _, b := range blocks {
		out = appendSection(out, b.Link.Bytes(), b.Data)
	}
	return out
}

// smallCAR is an archive of two records and two payloads.
func smallCAR(t testing.TB) ([]byte, []Block) {
	t.Helper()
	text := Raw([]byte("some text that was said"))
	inner := must(Encode(map[string]any{"text": text.Link}))
	root := must(Encode(map[string]any{"inner": inner.Link, "again": text.Link}))
	blocks := []Block{root, inner, text, Raw(nil)}
	return carOf([]protocol.Link{root.Link}, blocks...), blocks
}

func TestCARReadsBackWhatWasWritten(t *testing.T) {
	data, want := smallCAR(t)
	roots, got, err := readCAR(data)
	if err != nil || len(roots) != 1 || roots[0] != want[0].Link || len(got) != len(want) {
		t.Fatalf("roots %v, %d blocks, %v", roots, len(got), err)
	}
	for i := range want {
		if got[i].Link != want[i].Link || !bytes.Equal(got[i].Data, want[i].Data) {
			t.Errorf("block %d differs", i)
		}
	}
}

func TestEveryFlippedByteOfACARIsFound(t *testing.T) {
	data, want := smallCAR(t)
	for i := range data {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			data[i] ^= flip
			roots, got, err := readCAR(data)
			same := err == nil && len(got) == len(want) && len(roots) == 1 && roots[0] == want[0].Link
			for j := range got {
				same = same && got[j].Link == want[j].Link
			}
			if same {
				t.Errorf("byte %d ^ %#x: not found", i, flip)
			}
			data[i] ^= flip
		}
	}
}

func TestACARCutAnywhereButBetweenBlocksIsCorrupt(t *testing.T) {
	data, want := smallCAR(t)
	clean := 0
	for n := range data {
		_, got, err := readCAR(data[:n])
		switch {
		case err == nil && len(got) < len(want):
			clean++
		case !errors.Is(err, protocol.ErrCorrupt):
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	if clean != len(want) {
		t.Errorf("%d cuts read cleanly; want %d, before each block", clean, len(want))
	}
}

func TestACARHeaderThatIsNoneIsCorrupt(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":           "",
		"a text file":       "hello, this is no archive at all, just some text that goes on and on and on and on and on and on and on",
		"version 3":         "\x0a\xa1\x67version\x03",
		"a giant section":   "\x0b\xa1\x67version\x01\xff\xff\xff\xff\x7f",
		"an empty section":  "\x00",
		"an endless varint": "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"CARv2 cut short":   carV2Pragma + "\x00\x00",
		"CARv2 at zero":     carV2Pragma + string(make([]byte, 40)),
	} {
		if _, _, err := readCAR([]byte(data)); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if roots, blocks, err := readCAR([]byte("\x11\xa2\x65roots\x80\x67version\x01")); err != nil || len(roots)+len(blocks) > 0 {
		t.Errorf("no roots, no blocks: %v", err)
	}
}

func FuzzCAR(f *testing.F) {
	data, _ := smallCAR(f)
	f.Add(data)
	f.Add([]byte("\x11\xa2\x65roots\x80\x67version\x01"))
	f.Add([]byte(carV2Pragma + string(make([]byte, 40))))
	f.Fuzz(func(t *testing.T, b []byte) {
		roots, blocks, err := readCAR(b)
		if err != nil {
			if !errors.Is(err, protocol.ErrCorrupt) {
				t.Fatalf("%v wraps no sentinel", err)
			}
			return
		}
		if _, again, err := readCAR(carOf(roots, blocks...)); err != nil || len(again) != len(blocks) {
			t.Fatalf("written again: %d of %d blocks, %v", len(again), len(blocks), err)
		}
	})
}
