package cas

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"wf/protocol"
)

// What is written is read, up to the longest payload, and what is longer is neither.
func TestPayloadsHaveOneBound(t *testing.T) {
	for _, n := range []int{0, 1, protocol.ChunkSize - 1, protocol.ChunkSize, protocol.ChunkSize + 1, 2 * protocol.ChunkSize, 5_000_000,
		protocol.PayloadMax - 1, protocol.PayloadMax, protocol.PayloadMax + 1, protocol.PayloadMax + protocol.ChunkSize} {
		text := bytes.Repeat([]byte("0123456"), n/7+1)[:n]
		root, blocks := Payload(text)
		have := map[protocol.Link][]byte{}
		var refused error
		for _, b := range blocks {
			have[b.Link] = b.Data
			refused = errors.Join(refused, Admit(b))
		}
		read := func(l protocol.Link) ([]byte, error) { return have[l], nil }
		got, err := protocol.PayloadBytes(read, root)
		if n <= protocol.PayloadMax {
			if err != nil || refused != nil || !bytes.Equal(got, text) || protocol.CheckPayload("it", n) != nil {
				t.Errorf("%d bytes: %d are read; %v, %v", n, len(got), err, refused)
			}
			continue
		}
		if !errors.Is(err, protocol.ErrCorrupt) || !errors.Is(refused, protocol.ErrTooLarge) || !errors.Is(protocol.CheckPayload("it", n), protocol.ErrTooLarge) {
			t.Errorf("%d bytes: %v, %v", n, err, refused)
		}
		if got != nil {
			t.Errorf("%d bytes: %d are read", n, len(got))
		}
	}
}

// recordLink names bytes as a record.
func recordLink(t *testing.T, data []byte) protocol.Link {
	t.Helper()
	l, err := protocol.CastLink(append([]byte{1, 0x71, 0x12, 32}, Raw(data).Link.Bytes()[4:]...))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A record of chunks that lies is refused before anything is made ready for what it says.
func TestChunksThatLieAreRefused(t *testing.T) {
	full, less := Raw(make([]byte, protocol.ChunkSize)), Raw([]byte("x"))
	for name, c := range map[string]protocol.Chunks{
		"too many":             {Size: protocol.PayloadMax + 1, Parts: slices.Repeat([]protocol.Link{full.Link}, 65)},
		"no size":              {Size: 0, Parts: []protocol.Link{full.Link}},
		"below a part":         {Size: protocol.ChunkSize, Parts: []protocol.Link{full.Link}},
		"negative":             {Size: -5, Parts: []protocol.Link{full.Link}},
		"overflow":             {Size: 1<<63 - 1, Parts: []protocol.Link{full.Link, full.Link}},
		"short parts":          {Size: protocol.PayloadMax, Parts: slices.Repeat([]protocol.Link{less.Link}, 64)},
		"one part too few":     {Size: 3*protocol.ChunkSize + 1, Parts: slices.Repeat([]protocol.Link{full.Link}, 3)},
		"one part too many":    {Size: 3 * protocol.ChunkSize, Parts: slices.Repeat([]protocol.Link{full.Link}, 4)},
		"a last part too long": {Size: protocol.ChunkSize + 2, Parts: []protocol.Link{full.Link, full.Link}},
		"no part":              {Size: 2 * protocol.ChunkSize, Parts: []protocol.Link{{}, full.Link}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Kind, c.V = protocol.KindChunks, 1
			data, err := Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			root := recordLink(t, data)
			read := func(l protocol.Link) ([]byte, error) {
				switch l {
				case full.Link:
					return full.Data, nil
				case less.Link:
					return less.Data, nil
				}
				return data, nil
			}
			if _, err := protocol.DecodeChunks(data); err == nil && !strings.Contains(name, "part") {
				t.Error("it is decoded")
			}
			if _, err = protocol.PayloadBytes(read, root); err == nil || !strings.Contains(err.Error(), "payload") {
				t.Errorf("%v", err)
			}
		})
	}
}
