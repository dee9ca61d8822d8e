package cas

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"wf/protocol"
)

// The head of a stored block tells the length of its bytes, at all lengths at which the form changes.
func TestPackedLen(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	lengths := []int{0, 1, 31, 32, 60, 61, 62, 63, 64, 65, 127, 128, 129, 8191, 8192, 8193, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20}
	for range 200 {
		lengths = append(lengths, rng.IntN(40_000))
	}
	check := func(b Block) {
		t.Helper()
		stored := PackBlock(b)
		got, err := PackedLen(b.Link, stored[:min(PackedHead, len(stored))])
		if err != nil || got != int64(len(b.Data)) {
			t.Fatalf("of %d bytes: %d, %v", len(b.Data), got, err)
		}
	}
	for _, n := range lengths {
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		said := bytes.Repeat([]byte("go test ./...\n"), n/14+1)[:n]
		check(Raw(noise))
		check(Raw(said))
		for _, data := range [][]byte{noise, said} {
			check(must(Encode(map[string]any{"said": data})))
		}
	}
	for _, bad := range [][]byte{nil, {0}, {5, 2, 0, 1}, {5, 1, 9, 1}, {5, 1, packZstd1, 1}} {
		if _, err := PackedLen(Raw(nil).Link, bad); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

// What is no stored form of blocks is damage, also where it says that it holds none.
func TestUnpackOfDamage(t *testing.T) {
	block := Raw([]byte("a text"))
	for _, bad := range [][]byte{nil, {0}, {1, 0}, {2, 0, packPlain}, {2, 0, packPlain, 2, 0, packPlain}, {2, 1, packPlain}, {3, 0, packPlain, 0}, PackBlock(block)[:5]} {
		if _, err := UnpackBlock(block.Link, bad); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("%x: %v", bad, err)
		}
		if all, err := UnpackBlocks(bad); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("%x: %d blocks, %v", bad, len(all), err)
		}
	}
}
