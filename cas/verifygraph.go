package cas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math"
	"strconv"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// blockName is a CID of this store's form, without its constant parts.
type blockName struct {
	codec byte
	sum   [sha256.Size]byte
}

func nameOf(l protocol.Link) (blockName, bool) {
	b := l.CID().KeyString()
	if len(b) != 36 || !plain([]byte(b)) {
		return blockName{}, false
	}
	n := blockName{codec: b[1]}
	copy(n.sum[:], b[4:])
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
	chunked int64 // of a payload in chunks: how many bytes it says that they hold
	reached bool
}

type eventFacts struct {
	prev                  ref
	seq                   protocol.Seq
	typ                   protocol.EventType
	step                  string
	record, result, start ref
	status                string
}

type stepFacts struct {
	start     ref
	parents   []ref
	resumes   ref
	continues []ref
	status    string
	role      string
}

// linksAtOnce bounds what room is made for the links of a block before they are read.
const linksAtOnce = 64

// examine reads one block whose bytes have the right hash.
func examine(codec byte, data []byte) *node {
	n := &node{size: len(data)}
	if codec != cid.DagCBOR {
		return n
	}
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	*s = scanner{b: data, max: MaxDepth, keys: s.keys[:0]}
	if links := bytes.Count(data, linkHead); links > 0 {
		n.links = make([]ref, 0, min(links, linksAtOnce))
	}
	s.onRaw = func(c []byte, at int) {
		if !plain(c) {
			n.foreign++
			return
		}
		r := ref{at: at}
		r.to.codec = c[1]
		copy(r.to.sum[:], c[4:])
		n.links = append(n.links, r)
	}
	defer func() { clear(s.keys); s.b, s.onRaw = nil, nil }()
	if err := s.run(); err != nil {
		n.fault = &Finding{Kind: "not_strict", Expected: "strict DAG-CBOR", Actual: err.Error()}
		return n
	}
	s.onRaw = nil
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
		if k, ok := s.top("size"); ok {
			n.chunked = s.intAt(k.value)
		}
	}
	return n
}

func (s *scanner) eventFacts() *eventFacts {
	e := &eventFacts{}
	for _, k := range s.keys {
		switch string(k.key) {
		case "prev":
			e.prev = s.refAt(k.value)
		case "seq":
			e.seq = protocol.Seq(s.intAt(k.value))
		case "type":
			e.typ = protocol.EventType(s.textAt(k.value))
		case "step":
			e.step = s.textAt(k.value)
		}
	}
	switch e.typ {
	case protocol.EvRunStarted, protocol.EvStepCompleted, protocol.EvForked, protocol.EvDone, protocol.EvCompacted:
		if k, ok := s.top("data"); ok && k.head>>5 == 5 {
			s.each(k.value, func(key []byte, at int) {
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
			})
		}
	}
	return e
}

func (s *scanner) stepFacts() *stepFacts {
	f := &stepFacts{}
	for _, k := range s.keys {
		switch string(k.key) {
		case "start":
			f.start = s.refAt(k.value)
		case "parents":
			f.parents = s.refsAt(k.value)
		case "continues":
			f.continues = s.refsAt(k.value)
		case "resumes", "prior":
			f.resumes = s.refAt(k.value)
		case "status":
			f.status = s.textAt(k.value)
		case "role":
			f.role = s.textAt(k.value)
		}
	}
	return f
}

// The readers below look at single values of a block that was scanned; another form reads
// as zero.

func (s *scanner) refAt(at int) ref {
	b := s.b[at:]
	if len(b) < 41 || b[0] != 0xd8 || b[3] != 37 || !plain(b[5:41]) {
		return ref{}
	}
	r := ref{at: at}
	r.to.codec = b[6]
	copy(r.to.sum[:], b[9:41])
	return r
}

func (s *scanner) refsAt(at int) []ref {
	s.pos = at
	major, _, n, err := s.head()
	if err != nil || major != 4 {
		return nil
	}
	var out []ref
	for range n {
		from := s.pos
		if s.value(1) != nil {
			return out
		}
		if r := s.refAt(from); r.defined() {
			out = append(out, r)
		}
	}
	return out
}

func (s *scanner) intAt(at int) int64 {
	s.pos = at
	major, _, n, err := s.head()
	if err != nil || major != 0 || n > math.MaxInt64 {
		return 0
	}
	return int64(n)
}

func (s *scanner) textAt(at int) string {
	s.pos = at
	major, _, n, err := s.head()
	if err != nil || major != 3 {
		return ""
	}
	return string(s.take(n))
}

// each visits the entries of the map at an offset.
func (s *scanner) each(at int, visit func(key []byte, value int)) {
	s.pos = at
	_, _, n, _ := s.head()
	for range n {
		_, _, k, err := s.head()
		if err != nil {
			return
		}
		key, value := s.take(k), s.pos
		if s.value(1) != nil {
			return
		}
		next := s.pos
		visit(key, value)
		s.pos = next
	}
}

// fieldAt is the path of the value at an offset of a scanned block: data.choices[2].label.
func fieldAt(data []byte, offset int) string {
	s := scanner{b: data, max: MaxDepth}
	path, _ := s.field(offset, "")
	return path
}

func (s *scanner) field(offset int, path string) (string, bool) {
	if s.pos == offset {
		return path, true
	}
	from := s.pos
	major, _, n, err := s.head()
	if err != nil {
		return path, false
	}
	switch major {
	case 4:
		for i := range n {
			if p, ok := s.field(offset, path+"["+strconv.FormatUint(i, 10)+"]"); ok {
				return p, true
			}
		}
	case 5:
		for range n {
			_, _, k, err := s.head()
			if err != nil || k > uint64(len(s.b)-s.pos) {
				return path, false
			}
			key := string(s.take(k))
			if path != "" {
				key = path + "." + key
			}
			if p, ok := s.field(offset, key); ok {
				return p, true
			}
		}
	default:
		s.pos = from
		if s.value(0) != nil {
			return path, false
		}
	}
	return path, false
}

// evidence is where verify reads blocks: a store, what is left of one, or an archive.
type evidence interface {
	// fetch gives the bytes of a block, whose hash was checked. An error wraps
	// protocol.ErrNotFound, or protocol.ErrCorrupt with what was found instead.
	fetch(ctx context.Context, n blockName) ([]byte, error)
}

// graph is what is known of the blocks so far.
type graph struct {
	nodes map[blockName]*node
	from  evidence
	count struct{ blocks, bytes int64 }
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
	if g.nodes[n] == nil {
		g.nodes[n] = made
		g.count.blocks++
		g.count.bytes += int64(made.size)
	}
}

// get finds a block, reading it when it was not met before.
func (g *graph) get(ctx context.Context, n blockName) (*node, error) {
	if found, ok := g.nodes[n]; ok {
		return found, nil
	}
	data, err := g.from.fetch(ctx, n)
	if err != nil {
		return nil, err
	}
	return g.add(n, data), nil
}
