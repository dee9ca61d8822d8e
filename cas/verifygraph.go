package cas

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/ipfs/go-cid"

	"wf/protocol"
	"wf/protocol/dagcbor"
	filetree "wf/protocol/tree" // tree is a bucket here
)

// blockName is a CID of this store's form, without its constant parts.
type blockName struct {
	codec byte
	sum   [sha256.Size]byte
}

func nameOf(l protocol.Link) (blockName, bool) { return nameIn(l.CID().KeyString()) }

// nameIn is the name in the bytes of a CID.
func nameIn[T string | []byte](cid T) (n blockName, ok bool) {
	if !dagcbor.Plain(cid) {
		return n, false
	}
	n.codec = cid[1]
	copy(n.sum[:], cid[4:])
	return n, true
}

func (n blockName) link() protocol.Link { return linkOf(n.codec, n.sum[:]) }

func (n blockName) String() string { return n.link().String() }

// ref is a link in a block.
type ref struct {
	to blockName
	at int // byte offset of the tag
}

func (r ref) defined() bool { return r.to.codec != 0 }

// node is what verify keeps of a block it has read and hashed: not the bytes.
type node struct {
	kind    string // one of our record kinds, or ""
	size    int
	links   []ref
	foreign int // links that are not of this store's form
	fault   *Finding
	event   *eventFacts
	step    *stepFacts
	archive *protocol.Archive
	chunked int64 // of a payload in chunks, or a file in parts: how many bytes it says that they hold
	reached bool

	// Of a tree: the entries of the block itself; those of all that it names, and how many directories lie within each other, once
	// it was weighed.
	entries, weight, depth int32
	weighed                bool
}

type eventFacts struct {
	prev                  ref
	seq                   protocol.Seq
	typ                   protocol.EventType
	record, result, start ref
	status                string
}

type stepFacts struct {
	start     ref
	parents   []ref
	resumes   ref
	continues []ref
	status    string
}

// linksAtOnce bounds what room is made for the links of a block before any was read, and linkLen is how many bytes each
// takes there: room for all of them is made once, where as many seem to follow.
const (
	linksAtOnce = 64
	linkLen     = 41
)

// examine reads one block; its bytes have the right hash.
func examine(codec byte, data []byte) *node {
	n := &node{size: len(data)}
	if codec != cid.DagCBOR {
		return n
	}
	if protocol.IsChunks(data) {
		c, err := protocol.DecodeChunks(data)
		if n.chunked = c.Size; err != nil { // its links are not even looked at: there may be any number
			n.kind, n.fault = protocol.KindChunks, &Finding{Kind: "not_a_record", Expected: "a payload in chunks", Actual: err.Error()}
			return n
		}
	}
	s := newScanner(data)
	defer s.free()
	links := min(bytes.Count(data, linkHead), len(data)/linkLen)
	if links > 0 {
		n.links = make([]ref, 0, min(links, linksAtOnce))
	}
	s.OnLink = func(c []byte, at int) {
		if to, ok := nameIn(c); ok {
			if len(n.links) == linksAtOnce {
				n.links = slices.Grow(n.links, max(0, links-linksAtOnce))
			}
			n.links = append(n.links, ref{to, at})
		} else {
			n.foreign++
		}
	}
	if err := s.Run(); err != nil {
		n.fault = &Finding{Kind: "not_strict", Expected: "strict DAG-CBOR", Actual: err.Error()}
		return n
	}
	kind := s.kind()
	if _, ours := records[kind]; !ours {
		return n
	}
	n.kind = kind
	if err := s.profile(); err != nil {
		n.fault = &Finding{Kind: "not_a_record", Expected: "a " + kind + " record", Actual: err.Error()}
		return n
	}
	switch kind {
	case protocol.KindEvent:
		n.event = s.eventFacts()
	case protocol.KindStep, protocol.KindStart, protocol.KindResult, protocol.KindCompaction:
		n.step = s.stepFacts()
	case protocol.KindArchive:
		n.archive = &protocol.Archive{}
		if err := Decode(data, n.archive); err != nil {
			n.fault = &Finding{Kind: "not_a_record", Expected: "an archive record", Actual: err.Error()}
		}
	case protocol.KindChunks:
		c, err := protocol.DecodeChunks(data)
		if n.chunked = c.Size; err != nil {
			n.fault = &Finding{Kind: "not_a_record", Expected: "a payload in chunks", Actual: err.Error()}
		}
	case protocol.KindTree:
		t, err := filetree.Decode(data)
		if n.entries = int32(len(t.Entries)); err != nil {
			n.fault = &Finding{Kind: "not_a_record", Expected: "a directory", Actual: err.Error()}
		}
	case protocol.KindFile:
		size, _, err := filetree.DecodeFile(data)
		if n.chunked = size; err != nil {
			n.fault = &Finding{Kind: "not_a_record", Expected: "a file in parts", Actual: err.Error()}
		}
	}
	return n
}

func (s *scanner) eventFacts() *eventFacts {
	e := &eventFacts{}
	var data dagcbor.Key
	for _, k := range s.Keys {
		switch string(k.Name) {
		case "prev":
			e.prev = s.refAt(k.At)
		case "seq":
			e.seq = protocol.Seq(s.intAt(k.At))
		case "type":
			e.typ = protocol.EventType(s.textAt(k.At))
		case "data":
			data = k
		}
	}
	switch e.typ {
	case protocol.EvRunStarted, protocol.EvStepCompleted, protocol.EvForked, protocol.EvDone, protocol.EvClosing, protocol.EvCompacted:
		if data.Major != dagcbor.Map {
			break
		}
		w := s.from(data.At)
		for _, _, n := w.Head(); n > 0; n-- {
			key := w.Text()
			at := w.At
			w.Item()
			switch string(key) {
			case "record":
				e.record = s.refAt(at)
			case "result":
				e.result = s.refAt(at)
			case "start":
				e.start = s.refAt(at)
			case "status":
				e.status = s.textAt(at)
			}
		}
	}
	return e
}

func (s *scanner) stepFacts() *stepFacts {
	f := &stepFacts{}
	for _, k := range s.Keys {
		switch string(k.Name) {
		case "start":
			f.start = s.refAt(k.At)
		case "parents":
			f.parents = s.refsAt(k.At)
		case "continues":
			f.continues = s.refsAt(k.At)
		case "resumes", "prior":
			f.resumes = s.refAt(k.At)
		case "status":
			f.status = s.textAt(k.At)
		}
	}
	return f
}

// The readers below look at single values of a block that was scanned; another form reads
// as zero.

func (s *scanner) refAt(at int) ref {
	if to, ok := nameIn(s.from(at).CID()); ok {
		return ref{to, at}
	}
	return ref{}
}

func (s *scanner) refsAt(at int) []ref {
	w := s.from(at)
	major, _, n := w.Head()
	if major != dagcbor.List {
		return nil
	}
	var out []ref
	for ; n > 0; n-- {
		if r := s.refAt(w.At); r.defined() {
			out = append(out, r)
		}
		w.Item()
	}
	return out
}

func (s *scanner) intAt(at int) int64 { return max(0, s.from(at).Number()) }

func (s *scanner) textAt(at int) string { return string(s.from(at).Text()) }

// fieldAt is the path of the value at an offset of a scanned block: data.choices[2].label.
func fieldAt(data []byte, offset int) string {
	w := dagcbor.Walk{B: data}
	path, _ := pathTo(&w, offset, "")
	return path
}

func pathTo(w *dagcbor.Walk, offset int, path string) (string, bool) {
	if w.At == offset {
		return path, true
	}
	switch {
	case w.Is(dagcbor.List):
		_, _, n := w.Head()
		for i := uint64(0); i < n && !w.Failed(); i++ {
			if p, ok := pathTo(w, offset, path+"["+strconv.FormatUint(i, 10)+"]"); ok {
				return p, true
			}
		}
	case w.Is(dagcbor.Map):
		for _, _, n := w.Head(); n > 0 && !w.Failed(); n-- {
			key := string(w.Text())
			if path != "" {
				key = path + "." + key
			}
			if p, ok := pathTo(w, offset, key); ok {
				return p, true
			}
		}
	default:
		w.Item()
	}
	return path, false
}

// graph is what is known of the blocks so far.
type graph struct {
	nodes   map[blockName]*node
	from    *ahead
	count   struct{ blocks, bytes int64 }
	counted bool  // every block of the store is in count
	failed  error // the first error of from that says nothing of a block

	ordered bool // what is met is noted in order
	order   []blockName
}

// add examines a block once. The caller has hashed it.
func (g *graph) add(n blockName, data []byte) *node {
	if old, ok := g.nodes[n]; ok {
		return old
	}
	made := examine(n.codec, data)
	g.put(n, made)
	return made
}

// put adds a node that is not there yet.
func (g *graph) put(n blockName, made *node) {
	if g.nodes[n] != nil {
		return
	}
	g.nodes[n] = made
	if g.ordered {
		g.order = append(g.order, n)
	}
	if !g.counted {
		g.count.blocks++
		g.count.bytes += int64(made.size)
	}
}

// get finds a block, reading it when it was not met before.
func (g *graph) get(ctx context.Context, n blockName) (*node, error) {
	if found, ok := g.nodes[n]; ok {
		return found, nil
	}
	data, err := g.from.Block(ctx, n.link())
	if err != nil {
		if !errors.Is(err, protocol.ErrNotFound) && !errors.Is(err, protocol.ErrCorrupt) {
			g.failed = cmp.Or(g.failed, err)
		}
		return nil, err
	}
	return g.add(n, data), nil
}

// foresee has a block that was not met before read together with those of the next ones that were not.
func (g *graph) foresee(ctx context.Context, n blockName, next iter.Seq[blockName]) error {
	if g.from.many == nil || g.nodes[n] != nil || g.from.have[n.link()] != nil {
		return nil
	}
	links := append(make([]protocol.Link, 0, aheadBlocks), n.link())
	for x := range next {
		if len(links) == aheadBlocks {
			break
		}
		if g.nodes[x] == nil {
			links = append(links, x.link())
		}
	}
	return g.from.want(ctx, links)
}
