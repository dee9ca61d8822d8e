package cas

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"wf/protocol"
)

// archiveWriter writes an archive of runs: its record comes last, and is its last root.
type archiveWriter struct {
	w       io.Writer
	pause   func() // called before w is written to, which may be slow: a terminal, a socket
	pending []byte
	names   Block
	st      Stats
}

func (a *archiveWriter) begin(record protocol.Archive) (err error) {
	if a.names, err = Encode(record); err != nil {
		return err
	}
	var roots []protocol.Link
	for _, r := range record.Runs {
		roots = append(roots, r.Head)
	}
	roots = append(roots, a.names.Link)
	a.st = Stats{Root: roots[0], Runs: len(record.Runs)}
	a.pending, err = beginCAR(roots)
	return err
}

func (a *archiveWriter) add(l protocol.Link, data []byte) error {
	a.st.Blocks++
	if len(data) >= exportBuffer { // it is written as it is
		a.pending = append(binary.AppendUvarint(a.pending, uint64(len(l.Bytes())+len(data))), l.Bytes()...)
		if err := a.flush(); err != nil {
			return err
		}
		kept := a.pending
		a.pending = data
		err := a.flush()
		a.pending = kept
		return err
	}
	a.pending = appendSection(a.pending, l.Bytes(), data)
	if len(a.pending) < exportBuffer {
		return nil
	}
	return a.flush()
}

func (a *archiveWriter) flush() error {
	a.pause()
	a.st.Bytes += int64(len(a.pending))
	if _, err := a.w.Write(a.pending); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	a.pending = a.pending[:0]
	return nil
}

func (a *archiveWriter) end() (Stats, error) {
	err := a.add(a.names.Link, a.names.Data)
	if err == nil {
		err = a.flush()
	}
	return a.st, err
}

// WriteParts writes blocks of a store as a CARv1 archive, whose one root is the first of them. It says nothing of what they belong to: see JoinParts.
// A block that is not there, or damaged, is an error that names it.
func WriteParts(ctx context.Context, w io.Writer, from Keeper, links []protocol.Link) error {
	evidence, pause, done, err := bulkReader(ctx, from)
	if err != nil {
		return err
	}
	defer done()
	read := readingAhead(evidence)
	to := &archiveWriter{w: w, pause: pause}
	if to.pending, err = beginCAR(links[:min(1, len(links))]); err != nil {
		return err
	}
	for i, l := range links {
		if err := ctx.Err(); err != nil {
			return err
		}
		if read.have[l] == nil {
			if err := read.want(ctx, links[i:min(i+aheadBlocks, len(links))]); err != nil {
				return err
			}
		}
		data, err := read.Block(ctx, l)
		if err != nil {
			return fmt.Errorf("block %s: %w", l, lost(err))
		}
		if err := to.add(l, data); err != nil {
			return err
		}
	}
	return to.flush()
}

// JoinParts writes an archive of runs without the blocks that its reader has: the record says what it is of. next names blocks and gives the archive of
// WriteParts with them, io.EOF behind the last. A part that holds others, fewer or more is an error wrapping protocol.ErrCorrupt: it may come
// from elsewhere. That each block is what its name says is for Import to check.
func JoinParts(w io.Writer, record protocol.Archive, next func() ([]protocol.Link, io.ReadCloser, error)) (Stats, error) {
	to := &archiveWriter{w: w, pause: func() {}}
	if err := to.begin(record); err != nil {
		return Stats{}, err
	}
	for {
		links, part, err := next()
		if errors.Is(err, io.EOF) {
			return to.end()
		}
		if err != nil {
			return Stats{}, err
		}
		if err := errors.Join(to.join(links, part), part.Close()); err != nil {
			return Stats{}, err
		}
	}
}

// join adds the blocks of a part.
func (a *archiveWriter) join(links []protocol.Link, part io.Reader) error {
	c, err := newCARReader(part)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		b, at, err := c.next()
		switch over := errors.Is(err, io.EOF); {
		case over && i == len(links):
			return nil
		case over:
			return &CARError{at, fmt.Errorf("it ends after %d of %d blocks that were asked for", i, len(links))}
		case err != nil:
			return err
		case i == len(links) || b.Link != links[i]:
			return &CARError{at, fmt.Errorf("block %s was not asked for", b.Link)}
		}
		if err := a.add(b.Link, b.Data); err != nil {
			return err
		}
	}
}
