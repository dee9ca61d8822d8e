package service

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// source is a run whose archive has some blocks; it notes what it was asked for.
type source struct {
	api.Archive
	blocks []protocol.Link
	asked  []protocol.Link
	data   func(protocol.Link) []byte
}

func (s *source) Contents(_ context.Context, run protocol.RunID, _ api.ExportOptions, begin func(protocol.Archive) error, each func([]protocol.Link) error) error {
	if err := begin(protocol.Archive{Kind: protocol.KindArchive, V: protocol.RecordVersion, Runs: []protocol.ArchivedRun{{Run: run, Head: s.blocks[0], Seq: 1}}}); err != nil {
		return err
	}
	for some := range slices.Chunk(s.blocks, 1000) {
		if err := each(some); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) Parts(ctx context.Context, _ protocol.RunID, blocks []protocol.Link, w io.Writer) error {
	s.asked = append(s.asked, blocks...)
	if len(blocks) > api.BlocksMost {
		return fmt.Errorf("%d blocks are asked for at a time", len(blocks))
	}
	return cas.WriteParts(ctx, w, parted{data: s.data}, blocks)
}

// parted is a store of blocks alone.
type parted struct {
	cas.Keeper
	data func(protocol.Link) []byte
}

func (p parted) Block(_ context.Context, l protocol.Link) ([]byte, error) { return p.data(l), nil }

// greedy is a destination that asks for what it was not told of, and for each block twice.
type greedy struct {
	api.Archive
	more     []protocol.Link
	most     int // that it was told of at a time
	imported int64
}

func (g *greedy) Lacking(_ context.Context, blocks []protocol.Link) ([]protocol.Link, error) {
	g.most = max(g.most, len(blocks))
	return slices.Concat(g.more, blocks, blocks), nil
}

func (g *greedy) Import(_ context.Context, archive io.Reader, _ api.ImportOptions) (*api.Imported, error) {
	st, err := cas.CountCAR(archive)
	g.imported = st.Blocks
	return &api.Imported{Blocks: st.Blocks}, err
}

// A destination is given what the archive of the run has, each block once, and no other block of the source, whatever it asks for: below, at and
// beyond the number of blocks that a request names.
func TestADestinationIsGivenTheRunAlone(t *testing.T) {
	secret := cas.Raw([]byte("of another run"))
	for _, n := range []int{1, api.BlocksMost - 1, api.BlocksMost, api.BlocksMost + 1, 2*api.BlocksMost + 1} {
		known := map[protocol.Link][]byte{secret.Link: secret.Data}
		from := &source{data: func(l protocol.Link) []byte { return known[l] }}
		for i := range n {
			b := cas.Raw(fmt.Append(nil, "block ", i))
			known[b.Link] = b.Data
			from.blocks = append(from.blocks, b.Link)
		}
		to := &greedy{more: []protocol.Link{secret.Link}}
		_, sent, err := Bring(t.Context(), from, to, "R", api.ImportOptions{}, nil)
		if err != nil || sent != (Brought{n, n}) || to.imported != int64(n)+1 || to.most > api.BlocksMost {
			t.Errorf("%d blocks: %+v, %d imported, told of %d at a time, %v", n, sent, to.imported, to.most, err)
		}
		if !slices.Equal(from.asked, from.blocks) {
			t.Errorf("%d blocks: asked for are %d, the secret one among them: %t", n, len(from.asked), slices.Contains(from.asked, secret.Link))
		}
	}
}

// refusing is a destination that reads nothing of the archive.
type refusing struct{ greedy }

func (*refusing) Import(context.Context, io.Reader, api.ImportOptions) (*api.Imported, error) {
	return nil, protocol.ErrForbidden
}

// One that refuses the archive leaves nothing behind that waits for it.
func TestADestinationMayRefuse(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 4<<20)
	from := &source{data: func(protocol.Link) []byte { return long }}
	for i := range 100 {
		from.blocks = append(from.blocks, cas.Raw(fmt.Append(nil, i)).Link)
	}
	if _, _, err := Bring(t.Context(), from, &refusing{}, "R", api.ImportOptions{}, nil); protocol.CodeOf(err) != protocol.ErrForbidden.Code {
		t.Errorf("%v", err)
	}
}
