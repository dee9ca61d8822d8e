package cas

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// importBatch is how many bytes of blocks go into one commit.
const importBatch = 1 << 20

// incoming is an archive on its way into a store. It is read twice: to check it, and to keep it.
// As evidence it is the archive, and behind it what the store has.
type incoming struct {
	archive io.ReadSeeker
	base    int64 // where the archive begins
	into    Keeper
	*contents
	at  map[blockName]int64 // of the records: where their sections begin
	sum []byte              // over all names, in order
}

// survey reads the archive and checks every block. What is no archive is a *CARError; other errors are
// those of the reader.
func (x *incoming) survey(ctx context.Context, v *Verifier) (in Imported, err error) {
	x.contents, x.at = contentsOf(nil), map[blockName]int64{}
	x.sum, in.Roots, err = x.blocks(ctx, func(roots []protocol.Link) { x.contents = contentsOf(roots) }, func(b Block, at int64) error {
		n, ok := nameOf(b.Link)
		if !ok {
			return fmt.Errorf("CAR, byte %d: block %s is of another codec or hash function: %w", at, b.Link, errForeign)
		}
		if nd := v.g.add(n, b.Data); nd.fault != nil {
			return &CARError{at, fmt.Errorf("block %s: %s: %w", b.Link, nd.fault.Actual, protocol.ErrInvalidBlock)}
		}
		if n.codec == cid.DagCBOR {
			x.at[n] = at
		}
		x.add(b.Link, at)
		in.Blocks++
		in.Bytes += int64(len(b.Data))
		return nil
	})
	if err == nil {
		if why := x.cut(); why != nil {
			err = &CARError{0, why}
		}
	}
	return in, err
}

// whole refuses an archive of which sections are not where Export writes them, and trees that nobody can read. What the heads lead
// to is in the graph by now.
func (x *incoming) whole(ctx context.Context, v *Verifier) error {
	for _, s := range x.sections {
		if err := v.tree(ctx, s.name, func() string { return fmt.Sprintf("byte %d", s.at) }); err != nil {
			return err
		}
	}
	if err := v.report.Err(); err != nil {
		return err
	}
	at, err := x.misplaced(ctx, v)
	if at != nil {
		err = &CARError{at.at, errMisplaced(at)}
	}
	return err
}

// commit writes the blocks.
func (x *incoming) commit(ctx context.Context) error {
	var batch []Block
	size := 0
	flush := func() error {
		err := x.into.Commit(ctx, Batch{Blocks: batch})
		batch, size = nil, 0
		return err
	}
	sum, _, err := x.blocks(ctx, func([]protocol.Link) {}, func(b Block, _ int64) error {
		batch = append(batch, b)
		if size += len(b.Data); size >= importBatch {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil && !bytes.Equal(sum, x.sum) {
		err = &CARError{0, errors.New("the file was changed while it was read")}
	}
	return err
}

// blocks reads the archive from its beginning to its end; begin is given its roots.
func (x *incoming) blocks(ctx context.Context, begin func(roots []protocol.Link), f func(b Block, at int64) error) (sum []byte, roots []protocol.Link, err error) {
	if _, err := x.archive.Seek(x.base, io.SeekStart); err != nil {
		return nil, nil, err
	}
	c, err := newCARReader(x.archive)
	if err != nil {
		return nil, nil, err
	}
	begin(c.roots)
	names := sha256.New()
	for i := 0; ; i++ {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		b, at, err := c.next()
		if err == io.EOF {
			return names.Sum(nil), c.roots, nil
		}
		if err == nil {
			names.Write(b.Link.Bytes())
			err = f(b, at)
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// Moves are none: an archive has no reflog.
func (x *incoming) Moves(context.Context, Head) (*Moves, error) { return nil, nil }

// Block reads a block again.
func (x *incoming) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	n, _ := nameOf(l)
	at, ok := x.at[n]
	if !ok {
		return x.into.Block(ctx, l)
	}
	if _, err := x.archive.Seek(x.base+at, io.SeekStart); err != nil {
		return nil, err
	}
	c := &carReader{in: bufio.NewReader(x.archive), offset: at, end: -1}
	b, _, err := c.next()
	return b.Data, err
}

// rereadable is r with where it begins, if it can be read twice. Else it is read to its end, into a file in dir that
// has no name: it is gone with the process. done lets go of it.
func rereadable(r io.Reader, dir string) (twice io.ReadSeeker, base int64, done func(), err error) {
	if s, ok := r.(io.ReadSeeker); ok {
		if base, err := s.Seek(0, io.SeekCurrent); err == nil {
			return s, base, func() {}, nil
		}
	}
	f, err := os.CreateTemp(dir, ".import-*")
	if err != nil {
		return nil, 0, nil, classify(err)
	}
	done = func() { _ = f.Close() } // what was not written to it was told before
	if err := os.Remove(f.Name()); err != nil {
		done()
		return nil, 0, nil, classify(err)
	}
	to := &kept{file: f}
	if _, err := io.Copy(to, r); err != nil {
		done()
		return nil, 0, nil, cmp.Or(classify(to.err), err)
	}
	return f, 0, done, nil
}

// kept keeps the error of the file apart from that of what is copied to it.
type kept struct {
	file *os.File
	err  error
}

func (k *kept) Write(b []byte) (n int, err error) {
	n, k.err = k.file.Write(b)
	return n, k.err
}
