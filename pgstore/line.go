package pgstore

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	"wf/cas"
	"wf/protocol"
)

// Small blocks lie in the line of the reflog that their move writes, all of a line packed together: a row for each would take more than they do,
// and a journal is read by its lines. They are found by the first bytes of their digests, which others may share: what was found is
// hashed. So wf.blocks alone tells which blocks need not be stored, and one that is stored again gets a row there.

// Bounds of what lies in a line.
const (
	lineBlocks = 4    // by its indexes
	smallBytes = 2048 // of a block
	plainBytes = 4096 // of all, before they are packed
	lineBytes  = 1536 // stored: with more the row would be moved out of the table
	keyBytes   = 7    // with its length it takes 8 in an index
)

// line is what lies in a line: see wf.reflog. No data is nothing.
type line struct{ keys, data []byte }

// keyOf is what a block is found by.
func keyOf(l protocol.Link) []byte {
	b := l.Bytes()
	return b[min(4, len(b)):min(4+keyBytes, len(b))]
}

func isSmall(b cas.Block) bool { return len(b.Data) <= smallBytes }

// small are those of the small blocks of a batch that lie nowhere yet; a nil value is one that lies in a line.
type small map[protocol.Link]*cas.Block

func smallOf(blocks []block) small {
	s := small{}
	for _, b := range blocks {
		if b.small != nil {
			s[b.small.Link] = b.small
		}
	}
	return s
}

func (s small) taken(l protocol.Link) bool { return s[l] == nil }

// lay puts the events of a move in its line, or of one without events where it leads: all of them, or nothing. As far as there is room, what they
// lead to comes with them, unless it is known to be stored: so all that lies in a line of a journal is reached with it.
func (s small) lay(m cas.Move, known func(protocol.Link) bool) line {
	links := []protocol.Link{m.New}
	if len(m.Events) > 0 {
		links = links[:0]
		for _, e := range m.Events {
			links = append(links, e.CID)
		}
	}
	if len(links) > lineBlocks {
		return line{}
	}
	var own, led []cas.Block
	size := 0
	for _, l := range links {
		b := s[l]
		if b == nil {
			return line{}
		}
		own, size = append(own, *b), size+len(b.Data)
	}
	in := map[protocol.Link]bool{}
	for from := own; len(from) > 0 && len(own)+len(led) < lineBlocks; from = from[1:] {
		to, _ := cas.LinksIn(from[0].Link, from[0].Data) // what is no record is none for its readers, and leads nowhere
		for _, l := range to {
			b := s[l]
			if b == nil || in[l] || slices.Contains(links, l) || size+len(b.Data) > plainBytes || len(own)+len(led) == lineBlocks || known(l) {
				continue
			}
			in[l] = true
			led, size = append(led, *b), size+len(b.Data)
			from = append(from[:len(from):len(from)], *b)
		}
	}
	// What refers to another one of its codec comes behind it.
	slices.Reverse(led)
	slices.SortStableFunc(led, func(a, b cas.Block) int { return cmp.Compare(a.Link.CID().Type(), b.Link.CID().Type()) })
	for _, blocks := range [][]cas.Block{append(led, own...), own} {
		if data := cas.PackBlocks(blocks); len(data) <= lineBytes {
			for _, b := range blocks {
				s[b.Link] = nil
			}
			return line{keysOf(blocks), data}
		}
	}
	return line{}
}

// recent are blocks that this process has stored lately: what is stored again and again has a row, and not a place in each line.
type recent struct {
	mu          sync.Mutex
	new, before map[protocol.Link]struct{}
}

// recentBlocks is how many are remembered, twice at most.
const recentBlocks = 4096

func (r *recent) has(l protocol.Link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, is := r.new[l]
	_, was := r.before[l]
	return is || was
}

func (r *recent) add(all []protocol.Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range all {
		if len(r.new) == recentBlocks || r.new == nil {
			r.before, r.new = r.new, make(map[protocol.Link]struct{})
		}
		r.new[l] = struct{}{}
	}
}

// keysOf is what a line with blocks is found by.
func keysOf(blocks []cas.Block) (keys []byte) {
	for _, b := range blocks {
		keys = append(keys, keyOf(b.Link)...)
	}
	return keys
}

// blocksIn are the blocks that lie in a line. It is damaged where they are not those of its keys.
func blocksIn(data, keys []byte) ([]cas.Block, error) {
	all, err := cas.UnpackBlocks(data)
	if err == nil && !bytes.Equal(keysOf(all), keys) {
		err = fmt.Errorf("the blocks of a line have the keys %x, not %x: %w", keysOf(all), keys, protocol.ErrCorrupt)
	}
	return all, err
}

// eventsIn are the events that lie in a line, which moved so many.
func eventsIn(data, keys []byte, moved int) ([]cas.Block, error) {
	all, err := blocksIn(data, keys)
	if err == nil && (moved < 0 || moved > len(all)) {
		err = fmt.Errorf("%d blocks lie in a line of %d events: %w", len(all), moved, protocol.ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	return all[len(all)-moved:], nil
}

// heldBlocks are what may hold the blocks $1, in the order of these: the block in its stored form, or a line that it may lie in. What is looked
// up in lines is looked up one by one: no statistics tell that few share a key.
const heldBlocks = `select t.i, t.cid, b.data, false as packed from unnest($1::bytea[]) with ordinality t(cid, i) join wf.blocks b using (cid)
	union all select t.i, t.cid, p.data, true from unnest($1::bytea[]) with ordinality t(cid, i),
		lateral (select p.data from wf.packed p where p.key = substr(t.cid, 5, 7) offset 0) p`

// unpacked takes a block out of what may hold it. Where that is a line in which another block with its key lies, the error wraps protocol.ErrNotFound.
func unpacked(l protocol.Link, stored []byte, packed bool) ([]byte, error) {
	if !packed {
		return cas.UnpackBlock(l, stored)
	}
	all, err := cas.UnpackBlocks(stored)
	if err != nil {
		return nil, err
	}
	err = &cas.Mismatch{Expected: l, Actual: all[len(all)-1].Link}
	for _, b := range all {
		if b.Link == l {
			return b.Data, nil
		}
		if bytes.Equal(keyOf(b.Link), keyOf(l)) {
			err = protocol.ErrNotFound
		}
	}
	return nil, err
}

// yes is a boolean in its binary form.
func yes(b []byte) bool { return len(b) == 1 && b[0] == 1 }
