package cas

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// ReflogLine is one move of a head. It has no checksum.
type ReflogLine struct {
	N        int64         // which move of the head this is, from 1; 0 where the store does not count them
	Old, New protocol.Link // Old is null for the first
	Cut      bool          // Old is not known: a store has it in the line before, which is missing
	Seq      protocol.Seq  // of New
	TS       int64         // unix µs
	Note     string
}

// A line is a byte of flags, [lineFull: the old link], the new link or with lineShort its
// digest alone, seq, ts (with lineFull absolute, else since the line before), [lineNote: the
// note with its length]. Without lineFull the old link is the new one of the line before.
const (
	lineFull = 1 << iota
	lineShort
	lineNote
)

// lastMove is the last line of the reflog of a head, without Old; false where there is none that
// reads.
func lastMove(tx *bolt.Tx, name string) (last ReflogLine, ok bool) {
	b := tx.Bucket(bucketReflog)
	if b == nil {
		return last, false
	}
	_, v := lastChunk(b, name)
	var x rawLine
	for r := (reader{b: v}); len(r.b) > 0; {
		if x = r.rawLine(x); r.bad {
			return last, false
		}
		ok = true
	}
	x.old = nil
	last, err := x.line()
	return last, ok && err == nil
}

// lastChunk is the newest chunk of a head; nil for none.
func lastChunk(b *bolt.Bucket, name string) (key, chunk []byte) {
	behind := append(append(make([]byte, 0, len(name)+5), name...), 0, 0xff, 0xff, 0xff, 0xff)
	c := b.Cursor()
	back := c.Prev // from the first key behind the chunks of this head
	if k, _ := c.Seek(behind); k == nil {
		back = c.Last
	}
	if k, v := back(); len(k) == len(behind) && bytes.HasPrefix(k, behind[:len(name)+1]) {
		return k, v
	}
	return nil, nil
}

// rawLine is a line before its links are made: lines that are only passed over do not need them.
type rawLine struct {
	old, new []byte // CIDs; nil is null
	short    bool   // new is a digest alone
	oldShort bool
	seq      protocol.Seq
	ts       int64
	note     []byte
}

func (r *reader) rawLine(last rawLine) rawLine {
	flags := r.take(1)
	if r.bad {
		return last
	}
	x := rawLine{old: last.new, oldShort: last.short, ts: last.ts}
	if flags[0]&lineFull != 0 {
		x.old, x.oldShort, x.ts = r.take(r.uint()), false, 0
	}
	if x.short = flags[0]&lineShort != 0; x.short {
		x.new = r.take(sha256.Size)
	} else {
		x.new = r.take(r.uint())
	}
	x.seq = protocol.Seq(r.uint())
	x.ts += r.int()
	if flags[0]&lineNote != 0 {
		x.note = r.take(r.uint())
	}
	return x
}

func (x rawLine) line() (ReflogLine, error) {
	old, err := lineLink(x.old, x.oldShort)
	if err != nil {
		return ReflogLine{}, err
	}
	link, err := lineLink(x.new, x.short)
	return ReflogLine{Old: old, New: link, Seq: x.seq, TS: x.ts, Note: string(x.note)}, err
}

func lineLink(b []byte, short bool) (protocol.Link, error) {
	switch {
	case len(b) == 0:
		return protocol.Link{}, nil
	case short:
		return linkOf(0x71, b), nil
	}
	return protocol.CastLink(b)
}

// appendReflog adds a line to the last chunk of a head, or starts a new one. Lines share a
// value because each entry of bbolt costs 16 bytes beside its key.
func appendReflog(tx *bolt.Tx, old, now Head, note string) error {
	b := tx.Bucket(bucketReflog)
	b.FillPercent = 0.9
	k, v := lastChunk(b, now.Name)
	key := append(append(make([]byte, 0, len(now.Name)+5), now.Name...), 0, 0, 0, 0, 0)
	var chunk []byte
	if k != nil {
		copy(key, k)
		if len(v) < reflogChunk {
			chunk = append(make([]byte, 0, len(v)+64+len(note)), v...)
		} else {
			number := key[len(key)-4:]
			binary.BigEndian.PutUint32(number, binary.BigEndian.Uint32(number)+1)
		}
	}
	return b.Put(key, appendLine(chunk, old, now, note))
}

func appendLine(chunk []byte, old, now Head, note string) []byte {
	at, since := len(chunk), old.TS
	chunk = append(chunk, 0)
	if at == 0 || !old.Link.Defined() {
		chunk[at], since = lineFull, 0
		chunk = appendLink(chunk, old.Link)
	}
	if d, err := digestOf(now.Link); err == nil && now.Link.Bytes()[1] == 0x71 {
		chunk[at] |= lineShort
		chunk = append(chunk, d...)
	} else {
		chunk = appendLink(chunk, now.Link)
	}
	chunk = binary.AppendVarint(binary.AppendUvarint(chunk, uint64(now.Seq)), now.TS-since)
	if note != "" {
		chunk[at] |= lineNote
		chunk = append(binary.AppendUvarint(chunk, uint64(len(note))), note...)
	}
	return chunk
}
