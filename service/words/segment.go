package words

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"wf/api"
	"wf/protocol"
)

// A segment is one file of the index, which never changes:
//
//	magic │ length of the head │ seal of the head │ head: units, documents, the first word and the sum of each block │ blocks of words
//
// A document is what an event says under one kind. A block holds words in order, each with what it shares with the one before, and
// the documents that have it.
type segment struct {
	name  string
	size  int
	memo  []byte // all of it, where it is kept in memory
	units []unit
	ends  []uint32 // by unit: the number of the document behind its last
	docs  []doc    // by unit and event
	index []block
}

// A doc is a document.
type doc struct {
	seq  protocol.Seq
	kind kind
}

// A kind is what a text is in its run.
type kind uint8

// The kinds of texts. Their numbers are stored.
const (
	ofTitle kind = iota
	ofInput
	ofPrompt
	ofAnswer
	ofError
	ofQuestion
	ofPerson // that began a run or answered in it, or that it was begun for: its name is one word
)

// block is where words lie in a file.
type block struct {
	first string
	at    int
	size  int
	sum   string
}

const (
	segMagic  = "wf words 3\n"
	segBlock  = 16 << 10 // a block ends behind so many bytes
	segMost   = 64 << 20 // bytes of a file that is read
	sealSize  = sha256.Size
	sumSize   = 8
	headStart = len(segMagic) + 4 + sealSize
	headFirst = 32 << 10 // bytes that have the head of most segments
)

// seal is that of a head; key is the user's.
func seal(key []byte, head string) []byte {
	h := hmac.New(sha256.New, key)
	io.WriteString(h, "wf search\x00")
	io.WriteString(h, head)
	return h.Sum(nil)
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return string(s[:sumSize])
}

// encode writes a segment.
func (b *builder) encode(key []byte) []byte {
	var blocks, now []byte
	var index []block
	first, before := "", ""
	flush := func() {
		if len(now) > 0 {
			index = append(index, block{first, len(blocks), len(now), sumOf(now)})
			blocks, now, before = append(blocks, now...), now[:0], ""
		}
	}
	for _, w := range b.sorted() {
		if len(now) == 0 {
			first = w
		}
		n := 0
		for n < min(len(w), len(before)) && w[n] == before[n] {
			n++
		}
		now = binary.AppendUvarint(now, uint64(n))
		now = appendString(now, w[n:])
		now = appendDocs(now, *b.words[w], len(b.docs))
		if before = w; len(now) >= segBlock {
			flush()
		}
	}
	flush()
	head := binary.AppendUvarint(nil, uint64(len(b.units)))
	at := uint32(0)
	for i := range b.units {
		head = b.units[i].append(head)
		head = binary.AppendUvarint(head, uint64(b.ends[i]-at))
		last := protocol.Seq(0)
		for ; at < b.ends[i]; at++ {
			d := b.docs[at]
			head = binary.AppendUvarint(head, uint64(d.seq-last)<<3|uint64(d.kind))
			last = d.seq
		}
	}
	head = binary.AppendUvarint(head, uint64(len(index)))
	for _, x := range index {
		head = appendString(head, x.first)
		head = append(binary.AppendUvarint(head, uint64(x.size)), x.sum...)
	}
	out := make([]byte, 0, headStart+len(head)+len(blocks))
	out = binary.BigEndian.AppendUint32(append(out, segMagic...), uint32(len(head)))
	out = append(append(out, seal(key, string(head))...), head...)
	return append(out, blocks...)
}

// appendDocs writes the numbers of documents of n in all, in order: as differences, or as one bit each where that is shorter.
func appendDocs(b []byte, list []uint32, n int) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, uint64(len(list))<<1)
	last := uint32(0)
	for _, d := range list {
		b = binary.AppendUvarint(b, uint64(d-last))
		last = d
	}
	if size := (n + 7) / 8; len(b)-from > size+1 {
		b = binary.AppendUvarint(b[:from], 1)
		b = append(b, make([]byte, size)...)
		set := b[len(b)-size:]
		for _, d := range list {
			set[d/8] |= 1 << (d % 8)
		}
	}
	return b
}

// documents calls each with the numbers of documents that appendDocs wrote.
func (c *cursor) documents(n int, each func(uint32)) {
	x := c.uint()
	if x&1 == 1 {
		for i, b := range []byte(c.bytes((n + 7) / 8)) {
			for ; b != 0; b &= b - 1 {
				if d := i*8 + bits.TrailingZeros8(b); d < n {
					each(uint32(d))
				}
			}
		}
		return
	}
	last := uint64(0)
	for i := x >> 1; i > 0 && !c.bad; i-- {
		if last += c.uint(); last >= uint64(n) {
			c.b, c.bad = "", true
			return
		}
		each(uint32(last))
	}
}

// readSegment reads the head of a segment. An error wraps errDamaged, or is of the reader.
func readSegment(r io.ReaderAt, key []byte) (*segment, error) {
	start, err := readAt(r, part{0, headStart})
	if err != nil {
		return nil, err
	}
	if string(start[:len(segMagic)]) != segMagic {
		return nil, fmt.Errorf("its beginning is %w", errDamaged)
	}
	n := binary.BigEndian.Uint32(start[len(segMagic):])
	if n > segMost {
		return nil, fmt.Errorf("its length is %w", errDamaged)
	}
	b, err := readAt(r, part{headStart, int(n)})
	if err != nil {
		return nil, err
	}
	head := string(b)
	if !hmac.Equal(seal(key, head), start[headStart-sealSize:]) {
		return nil, fmt.Errorf("its head is %w", errDamaged)
	}
	s := &segment{}
	c := cursor{b: head}
	s.units = make([]unit, c.count())
	s.ends = make([]uint32, len(s.units))
	for i := range s.units {
		s.units[i] = c.unit()
		seq := protocol.Seq(0)
		for range c.count() {
			x := c.uint()
			seq += protocol.Seq(x >> 3)
			s.docs = append(s.docs, doc{seq, kind(x & 7)})
		}
		s.ends[i] = uint32(len(s.docs))
	}
	s.index = make([]block, c.count())
	at := headStart + len(head)
	for i := range s.index {
		s.index[i] = block{first: c.string(), at: at, size: int(c.uint()), sum: c.bytes(sumSize)}
		if at += s.index[i].size; s.index[i].size <= 0 || at > segMost {
			c.bad = true
			break
		}
	}
	if s.size = at; c.bad {
		return nil, fmt.Errorf("its length is %w", errDamaged)
	}
	return s, nil
}

// unitOf is the unit that a document belongs to.
func (s *segment) unitOf(d uint32) int {
	return sort.Search(len(s.ends), func(i int) bool { return s.ends[i] > d })
}

// docsOf are the numbers of the documents of a unit: from … end-1.
func (s *segment) docsOf(u int) (from, end uint32) {
	if u > 0 {
		from = s.ends[u-1]
	}
	return from, s.ends[u]
}

// blockOf is the number of the block in which a word is, if it is there.
func (s *segment) blockOf(w string) int {
	i, _ := slices.BinarySearchFunc(s.index, w, func(b block, w string) int { return cmp.Compare(b.first, w) })
	if i == len(s.index) || s.index[i].first > w {
		i--
	}
	return max(i, 0)
}

// blocksOf are the parts of a segment that match reads, each once and in order.
func (s *segment) blocksOf(wanted []api.Wanted) (out []part) {
	add := func(w string, prefix bool) {
		for i := s.blockOf(w); i < len(s.index); i++ {
			x := s.index[i]
			if x.first > w && !(prefix && strings.HasPrefix(x.first, w)) {
				break
			}
			out = append(out, part{x.at, x.size})
		}
	}
	for _, t := range wanted {
		if !t.Chars {
			add(t.Word, t.Prefix)
			continue
		}
		for _, c := range t.Word {
			add(string(c), false)
		}
	}
	slices.SortFunc(out, func(a, b part) int { return cmp.Compare(a.at, b.at) })
	return slices.Compact(out)
}

// words calls each with the words from first on, in order, and what gives their documents, until it is false.
func (s *segment) words(r io.ReaderAt, first string, each func(word string, docs func(func(uint32))) bool) error {
	for _, x := range s.index[s.blockOf(first):] {
		b, err := readAt(r, part{x.at, x.size})
		if err != nil {
			return err
		}
		if sumOf(b) != x.sum {
			return fmt.Errorf("words from %q on are %w", x.first, errDamaged)
		}
		c, w := cursor{b: string(b)}, ""
		for c.b != "" {
			n := int(c.uint())
			if n > len(w) {
				c.bad = true
				break
			}
			w = w[:n] + c.string()
			if w < first {
				c.documents(len(s.docs), func(uint32) {})
				continue
			}
			read := false
			more := each(w, func(f func(uint32)) {
				read = true
				c.documents(len(s.docs), f)
			})
			if !more {
				return nil
			}
			if !read {
				c.documents(len(s.docs), func(uint32) {})
			}
		}
		if c.bad {
			return fmt.Errorf("words from %q on are %w", x.first, errDamaged)
		}
	}
	return nil
}

// match are the documents that have a word which fits, a bit for each.
func (s *segment) match(r io.ReaderAt, t api.Wanted) (bitmap, error) {
	m := make(bitmap, (len(s.docs)+63)/64)
	if t.Chars {
		for i, c := range t.Word {
			of, err := s.match(r, api.Wanted{Word: string(c)})
			if err != nil {
				return nil, err
			}
			for d := range m {
				if i == 0 {
					m[d] = of[d]
				}
				m[d] &= of[d]
			}
		}
		return m, nil
	}
	err := s.words(r, t.Word, func(w string, docs func(func(uint32))) bool {
		if !strings.HasPrefix(w, t.Word) {
			return false
		}
		if t.Fits(w) {
			docs(m.set)
		}
		return t.Prefix
	})
	return m, err
}

// A bitmap has a bit for each document of a segment.
type bitmap []uint64

func (m bitmap) set(d uint32) { m[d/64] |= 1 << (d % 64) }

func (m bitmap) has(d uint32) bool { return m[d/64]>>(d%64)&1 == 1 }
