package cas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"wf/protocol"
)

// pageFile reads store.db without bbolt, whatever state it is in. Every length is held against
// the file before it is believed, a page is read once in a walk, and the depth is bounded: no
// damage makes it panic or run away, as bbolt's own check does when an overflow count is wrong.
//
// The file is pages of one size. Pages 0 and 1 are metas, of which the sound one of the newer
// transaction counts; from there a B+tree of branch and leaf pages holds the buckets
// (bbolt, internal/common). All numbers are little-endian.
type pageFile struct {
	in    io.ReaderAt
	size  int64
	page  int64 // bytes
	root  uint64
	free  uint64              // page of the list of free pages
	torn  []int               // metas that are not sound
	fault func(what string)   // hears of every damage, once for each place
	used  map[uint64]struct{} // pages read in this walk, or nil

	branches map[uint64]pageContent // that lookups have met, branchesMost at most
}

// branchesMost are some MB of branches; each leads to some hundred pages.
const branchesMost = 512

const (
	pageHead     = 16 // id u64, flags u16, count u16, overflow u32
	pageElement  = 16
	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageFree     = 0x10
	pageMagic    = 0xED0CDAED
	pageVersion  = 2
	pageDepth    = 48       // of branches and buckets together
	pageBytesMax = 64 << 20 // one page with its overflow
	bucketHead   = 16       // root u64, sequence u64
)

var errNoPages = errors.New("neither meta page is sound")

// openPages finds the meta page in force. Without one it returns errNoPages and a pageFile
// that can only be swept.
func openPages(in io.ReaderAt, size int64) (*pageFile, error) {
	p := &pageFile{in: in, size: size, page: 4096, fault: func(string) {}}
	m, torn, _ := newestMeta(in)
	if p.torn = torn; len(torn) == 2 || m.version != pageVersion {
		return p, errNoPages
	}
	p.page, p.root, p.free = m.pageSize, m.root, m.free
	return p, nil
}

// newestMeta is the meta page in force; torn are those that are not sound. magic reports whether one is of bbolt.
func newestMeta(in io.ReaderAt) (newest meta, torn []int, magic bool) {
	var sound [2]bool
	for _, at := range metaOffsets {
		m, ours, ok := readMeta(in, at)
		magic = magic || ours
		if !ok {
			continue
		}
		if sound == [2]bool{} || m.txid > newest.txid {
			newest = m
		}
		sound[min(at, 1)] = true
	}
	for n, ok := range sound {
		if !ok {
			torn = append(torn, n)
		}
	}
	return newest, torn, magic
}

// metaOffsets is where the two meta pages may be: the first at the beginning, the second one page
// behind it. Both hold the size of a page, and either may be damaged.
var metaOffsets = []int64{0, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16}

// checkHeader looks at a bbolt file before bbolt does: it would write a new database over an
// empty file, and read beyond the end of one cut short. size is the length of the file.
func checkHeader(f io.ReaderAt, size int64) error {
	if size == 0 {
		return fmt.Errorf("the file is empty; it was cut short: %w", protocol.ErrStore)
	}
	newest, torn, magic := newestMeta(f)
	need := newest.pages * uint64(newest.pageSize)
	switch {
	case !magic:
		return fmt.Errorf("the file is no wf store: %w", protocol.ErrStore)
	case len(torn) == 2:
		return fmt.Errorf("both of its meta pages are damaged: %w", protocol.ErrStore)
	case need > uint64(size):
		return fmt.Errorf("the file was cut short: %d of %d bytes are left: %w", size, need, protocol.ErrStore)
	}
	return nil
}

// readPages calls f with the pages of a file, for as long as that is open.
func readPages(path string, f func(*pageFile) error) error {
	file, err := openData(path)
	if err != nil {
		return err
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return err
	}
	p, err := openPages(file, fi.Size())
	if err != nil {
		return fmt.Errorf("%s: %w: %w", path, protocol.ErrCorrupt, err)
	}
	return f(p)
}

type meta struct {
	pageSize                int64
	root, free, pages, txid uint64
	version                 uint32
}

// readMeta reads a meta page. magic reports whether it is one of bbolt, sound whether it is undamaged.
// bbolt writes the byte order of the machine.
func readMeta(in io.ReaderAt, at int64) (m meta, magic, sound bool) {
	var b [pageHead + 64]byte
	if _, err := in.ReadAt(b[:], at); err != nil {
		return m, false, false
	}
	v := b[pageHead:]
	u32 := func(i int) uint32 { return binary.NativeEndian.Uint32(v[i:]) }
	u64 := func(i int) uint64 { return binary.NativeEndian.Uint64(v[i:]) }
	h := fnv.New64a()
	h.Write(v[:56])
	m = meta{pageSize: int64(u32(8)), root: u64(16), free: u64(32), pages: u64(40), txid: u64(48), version: u32(4)}
	magic = u32(0) == pageMagic
	sound = magic && u64(56) == h.Sum64() && (at == 0 || m.pageSize == at) &&
		m.pageSize >= 1<<10 && m.pageSize <= 1<<16 && m.pageSize&(m.pageSize-1) == 0
	return m, magic, sound
}

// pageContent is the content of a page that was read: keys with values, or with children.
type pageContent struct {
	leaf  bool
	items []pageItem
}

type pageItem struct {
	key, value []byte
	at         int64 // of the value, in the file
	child      uint64
	bucket     bool
}

// read takes a page apart. Elements that lie outside of it are left out and reported.
func (p *pageFile) read(id uint64) (pageContent, bool) {
	var b []byte
	var err error
	if _, again := p.used[id]; again {
		err = errors.New("reached on two ways")
	} else {
		if p.used != nil {
			p.used[id] = struct{}{}
		}
		b, err = p.image(id, pageBranch, pageLeaf)
	}
	if err != nil {
		p.fault(fmt.Sprintf("page %d: %v", id, err))
		return pageContent{}, false
	}
	return p.elements(b, binary.LittleEndian.Uint16(b[8:]) == pageLeaf, fmt.Sprintf("page %d", id), int64(id)*p.page), true
}

// onWay is read for lookups: they meet the same branches again and again.
func (p *pageFile) onWay(id uint64) (pageContent, bool) {
	if c, ok := p.branches[id]; ok {
		return c, true
	}
	c, ok := p.read(id)
	if ok && !c.leaf {
		if p.branches == nil || len(p.branches) == branchesMost {
			p.branches = map[uint64]pageContent{}
		}
		p.branches[id] = c
	}
	return c, ok
}

// image reads a page of one of these types, with its overflow.
func (p *pageFile) image(id uint64, types ...uint16) ([]byte, error) {
	count := uint64(p.size / p.page)
	if id < 2 || id >= count {
		return nil, fmt.Errorf("not one of the %d pages of the file", count)
	}
	b := make([]byte, p.page)
	if _, err := p.in.ReadAt(b, int64(id)*p.page); err != nil {
		return nil, err
	}
	self, flags, overflow := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint16(b[8:]), uint64(binary.LittleEndian.Uint32(b[12:]))
	switch {
	case self != id:
		return nil, fmt.Errorf("says that it is page %d", self)
	case !slices.Contains(types, flags):
		return nil, fmt.Errorf("of unknown type %#x", flags)
	case overflow == 0:
		return b, nil
	case overflow >= count-id || flags != pageFree && (overflow+1)*uint64(p.page) > pageBytesMax:
		return nil, fmt.Errorf("goes on for %d pages, beyond the file or any sense", overflow)
	}
	whole := make([]byte, (overflow+1)*uint64(p.page))
	_, err := p.in.ReadAt(whole, int64(id)*p.page)
	return whole, err
}

// elements reads the elements of a page image, also of an inline one.
func (p *pageFile) elements(b []byte, leaf bool, name string, base int64) pageContent {
	n := int(binary.LittleEndian.Uint16(b[10:]))
	if fit := (len(b) - pageHead) / pageElement; n > fit {
		p.fault(fmt.Sprintf("%s: %d elements, %d fit", name, n, fit))
		n = fit
	}
	out := pageContent{leaf: leaf, items: make([]pageItem, 0, n)}
	var last []byte
	for i := range n {
		at := uint64(pageHead + i*pageElement)
		e := b[at:]
		var pos, ksize, vsize uint64
		var it pageItem
		if leaf {
			flags := binary.LittleEndian.Uint32(e)
			if it.bucket = flags&1 != 0; flags > 1 {
				p.fault(fmt.Sprintf("%s: element %d has unknown flags %#x", name, i, flags))
			}
			pos, ksize, vsize = uint64(binary.LittleEndian.Uint32(e[4:])), uint64(binary.LittleEndian.Uint32(e[8:])), uint64(binary.LittleEndian.Uint32(e[12:]))
		} else {
			pos, ksize, it.child = uint64(binary.LittleEndian.Uint32(e)), uint64(binary.LittleEndian.Uint32(e[4:])), binary.LittleEndian.Uint64(e[8:])
		}
		from := at + pos
		if from+ksize+vsize > uint64(len(b)) || leaf && ksize == 0 {
			p.fault(fmt.Sprintf("%s: element %d lies outside of it", name, i))
			continue
		}
		it.key, it.value = b[from:from+ksize:from+ksize], b[from+ksize:from+ksize+vsize:from+ksize+vsize]
		it.at = base + int64(from+ksize)
		if i > 0 && bytes.Compare(last, it.key) >= 0 {
			p.fault(fmt.Sprintf("%s: key %d is not above the one before", name, i))
		}
		last = it.key
		out.items = append(out.items, it)
	}
	return out
}

// tree is a bucket.
type tree struct {
	p      *pageFile
	root   uint64
	inline []byte // the page image, for a small bucket
	at     int64  // of inline, in the file
	depth  int

	sequence uint64 // the last number given out by NextSequence
}

func (p *pageFile) top() tree { return tree{p: p, root: p.root} }

// bucket opens the bucket that a leaf value describes.
func (t tree) bucket(it pageItem) (tree, bool) {
	value := it.value
	if len(value) < bucketHead {
		t.p.fault(fmt.Sprintf("a bucket described by %d bytes", len(value)))
		return tree{}, false
	}
	sub := tree{p: t.p, root: binary.LittleEndian.Uint64(value), depth: t.depth + 1, sequence: binary.LittleEndian.Uint64(value[8:])}
	if sub.root == 0 {
		if len(value) < bucketHead+pageHead {
			t.p.fault(fmt.Sprintf("an inline bucket of %d bytes", len(value)))
			return tree{}, false
		}
		sub.inline, sub.at = value[bucketHead:], it.at+bucketHead
		if h := sub.inline; binary.LittleEndian.Uint64(h) != 0 || binary.LittleEndian.Uint16(h[8:]) != pageLeaf || binary.LittleEndian.Uint32(h[12:]) != 0 {
			t.p.fault(fmt.Sprintf("the inline page of bucket %q has a damaged head", it.key))
		}
	}
	return sub, true
}

// sub finds a bucket by its path.
func (p *pageFile) sub(path ...[]byte) (tree, bool) {
	t := p.top()
	for _, name := range path {
		it, ok := t.find(name)
		if !ok || !it.bucket {
			return tree{}, false
		}
		if t, ok = t.bucket(it); !ok {
			return tree{}, false
		}
	}
	return t, true
}

// find looks a key up as bbolt does.
func (t tree) find(key []byte) (pageItem, bool) {
	if t.p == nil { // a bucket that is not there
		return pageItem{}, false
	}
	walk := t.p.used // a lookup within a walk is none of its pages
	t.p.used = nil
	defer func() { t.p.used = walk }()
	id := t.root
	for range pageDepth {
		var c pageContent
		if t.inline != nil {
			c = t.p.elements(t.inline, true, "an inline page", t.at)
		} else {
			var ok bool
			if c, ok = t.p.onWay(id); !ok {
				return pageItem{}, false
			}
		}
		below := -1
		for i, it := range c.items {
			switch cmp := bytes.Compare(it.key, key); {
			case c.leaf && cmp == 0:
				return it, true
			case cmp <= 0:
				below = i
			}
		}
		if c.leaf || len(c.items) == 0 {
			return pageItem{}, false
		}
		id = c.items[max(below, 0)].child
	}
	t.p.fault("a tree deeper than any of this size can be")
	return pageItem{}, false
}

// values is each for a bucket that holds no other buckets.
func (t tree) values(from []byte, visit func(pageItem) error) error {
	return t.each(from, func(it pageItem) error {
		if it.bucket {
			t.p.fault(fmt.Sprintf("the key % x is marked as a bucket", it.key[:min(len(it.key), 16)]))
			return nil
		}
		return visit(it)
	})
}

// each visits the entries with keys above from in order. An error of visit ends it.
func (t tree) each(from []byte, visit func(pageItem) error) error {
	if t.inline != nil {
		return t.leaf(t.p.elements(t.inline, true, "an inline page", t.at), from, nil, nil, visit)
	}
	return t.descend(t.root, t.depth, from, nil, nil, visit)
}

// descend walks the page id, which must have its keys in [low, high).
func (t tree) descend(id uint64, depth int, from, low, high []byte, visit func(pageItem) error) error {
	if depth > pageDepth {
		t.p.fault(fmt.Sprintf("page %d: a tree deeper than any of this size can be", id))
		return nil
	}
	c, ok := t.p.read(id)
	if !ok {
		return nil
	}
	if c.leaf {
		return t.leaf(c, from, low, high, visit)
	}
	for i, it := range c.items {
		next := high
		if i+1 < len(c.items) {
			next = c.items[i+1].key
		}
		if from != nil && next != nil && bytes.Compare(next, from) <= 0 {
			continue
		}
		if err := t.descend(it.child, depth+1, from, it.key, next, visit); err != nil {
			return err
		}
	}
	return nil
}

func (t tree) leaf(c pageContent, from, low, high []byte, visit func(pageItem) error) error {
	for _, it := range c.items {
		if low != nil && bytes.Compare(it.key, low) < 0 || high != nil && bytes.Compare(it.key, high) >= 0 {
			t.p.fault(fmt.Sprintf("the key % x stands where no lookup finds it", it.key[:min(len(it.key), 16)]))
		}
		if from != nil && bytes.Compare(it.key, from) <= 0 {
			continue
		}
		if err := visit(it); err != nil {
			return err
		}
	}
	return nil
}

// sweep visits the elements of every leaf page of the file that a walk did not reach, also of
// pages that are free: the way to blocks when the tree above them is gone.
func (p *pageFile) sweep(visit func(it pageItem) error) error {
	loud := p.fault
	p.fault = func(string) {}
	defer func() { p.fault = loud }()
	for id := uint64(2); id < uint64(p.size/p.page); id++ {
		c, ok := p.read(id)
		if !ok || !c.leaf {
			continue
		}
		for _, it := range c.items {
			if it.bucket {
				if sub, ok := (tree{p: p}).bucket(it); ok && sub.inline != nil {
					if err := sub.each(nil, visit); err != nil {
						return err
					}
				}
				continue
			}
			if err := visit(it); err != nil {
				return err
			}
		}
	}
	return nil
}
