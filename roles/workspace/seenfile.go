package workspace

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"wf/protocol"
	"wf/protocol/tree"
)

// seenMagic begins the file of a Seen; another version has another.
const seenMagic = "wf seen 1\n"

// ErrSeen is a file that holds no Seen: it was damaged, or is of another version.
var ErrSeen = errors.New("what was seen of the files cannot be read")

// The modes as they are written.
var seenModes = []tree.Mode{tree.File, tree.Exec, tree.Link, tree.Dir, tree.Omitted}

// Encode writes what was seen: the directories by their paths, their entries in order, and behind those of files that were
// settled their stat. The SHA-256 of it is at the end. Numbers are varints, texts have their lengths before them.
func (s *Seen) Encode() []byte {
	w := seenWriter{b: []byte(seenMagic)}
	w.bytes(s.Root.Bytes())
	w.number(int64(len(s.dirs)))
	for _, path := range slices.Sorted(maps.Keys(s.dirs)) {
		d := s.dirs[path]
		w.text(path)
		w.bytes(d.link.Bytes())
		w.number(int64(len(d.entries)))
		settled := d.files
		for _, e := range d.entries {
			w.text(e.Name)
			w.number(int64(slices.Index(seenModes, e.Mode)))
			w.bytes(linkBytes(e.Link))
			w.number(e.Size)
			w.text(e.Why)
			if len(settled) == 0 || settled[0].entry.Name != e.Name {
				w.number(0)
				continue
			}
			is := settled[0].stat
			settled = settled[1:]
			exec := int64(0)
			if is.exec {
				exec = 1
			}
			for _, n := range [...]int64{1, int64(is.ino), is.size, is.mtime, is.ctime, exec} {
				w.number(n)
			}
		}
	}
	sum := sha256.Sum256(w.b)
	return append(w.b, sum[:]...)
}

func linkBytes(l protocol.Link) []byte {
	if !l.Defined() {
		return nil
	}
	return l.Bytes()
}

type seenWriter struct{ b []byte }

func (w *seenWriter) number(n int64) { w.b = binary.AppendVarint(w.b, n) }
func (w *seenWriter) text(s string)  { w.number(int64(len(s))); w.b = append(w.b, s...) }
func (w *seenWriter) bytes(b []byte) { w.number(int64(len(b))); w.b = append(w.b, b...) }

// DecodeSeen reads what Encode wrote. All else is ErrSeen.
func DecodeSeen(data []byte) (*Seen, error) {
	if len(data) < len(seenMagic)+sha256.Size || string(data[:len(seenMagic)]) != seenMagic {
		return nil, ErrSeen
	}
	data, end := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if sum := sha256.Sum256(data); string(sum[:]) != string(end) {
		return nil, ErrSeen
	}
	s := NewSeen(Settled)
	r := seenReader{b: string(data[len(seenMagic):])}
	s.Root = r.link()
	n := r.count()
	s.dirs = make(map[string]*seenDir, n)
	for range n {
		path := r.text()
		d := &seenDir{link: r.link()}
		entries := r.count()
		d.entries, d.files = make([]tree.Entry, 0, entries), make([]seenFile, 0, entries)
		for range entries {
			e := tree.Entry{Name: r.text()}
			if mode := r.number(); mode >= 0 && mode < int64(len(seenModes)) {
				e.Mode = seenModes[mode]
			} else {
				r.bad = true
			}
			e.Link, e.Size, e.Why = r.link(), r.number(), r.text()
			d.entries = append(d.entries, e)
			if r.number() == 1 {
				is := stat{uint64(r.number()), r.number(), r.number(), r.number(), r.number() == 1}
				d.files = append(d.files, seenFile{is, e})
			}
		}
		s.dirs[path] = d
	}
	if r.bad || r.b != "" {
		return nil, ErrSeen
	}
	return s, nil
}

// seenReader reads from a text, whose parts are those of the names.
type seenReader struct {
	b   string
	bad bool
}

func (r *seenReader) number() int64 {
	var n uint64
	for i := 0; i < len(r.b) && i < binary.MaxVarintLen64; i++ {
		n |= uint64(r.b[i]&0x7f) << (7 * i)
		if r.b[i] < 0x80 {
			r.b = r.b[i+1:]
			return int64(n>>1) ^ -int64(n&1)
		}
	}
	r.b, r.bad = "", true
	return 0
}

// count is how many of something follow, each of which has a byte at least.
func (r *seenReader) count() int64 {
	n := r.number()
	if n < 0 || n > int64(len(r.b)) {
		r.b, r.bad = "", true
		return 0
	}
	return n
}

func (r *seenReader) text() string {
	n := r.count()
	text := r.b[:n]
	r.b = r.b[n:]
	return text
}

func (r *seenReader) link() protocol.Link {
	text := r.text()
	if text == "" {
		return protocol.Link{}
	}
	l, err := protocol.CastLink([]byte(text))
	if err != nil {
		r.bad = true
	}
	return l
}
