package dagcbor

import (
	"bytes"
	"math"

	"github.com/ipfs/go-cid"
)

// MaxDepth is how deep lists and maps may nest in a block.
const MaxDepth = 64

// Check checks that b is one value in strict DAG-CBOR: one value has one encoding, and so one CID.
// Decoders let much more through, so this runs on every write and in every verify. The error is a
// *Fault.
//
// The rules are those of the DAG-CBOR specification, "Strictness", plus no −0.0.
func Check(b []byte) error {
	s := Scan{Walk: Walk{B: b}}
	return s.Run()
}

// Scan is a strict Walk over a whole block. On its way it notes what is asked of records.
type Scan struct {
	Walk
	Depth  int                      // how deep lists and maps may nest; 0 is MaxDepth
	OnLink func(cid []byte, at int) // is called for every link in order, with the offset of its tag; may be nil
	Keys   []Key                    // are added: the entries of the outermost map; not where it is nil
	Wide   Fault                    // the first value that is strict DAG-CBOR and that no record may hold
}

// Key is an entry of the outermost map: the bytes of its key, the head and the place of its value.
type Key struct {
	Name        []byte
	Major, Info byte
	At          int
}

// Run walks over the block, once. The error is a *Fault.
func (s *Scan) Run() error {
	s.Strict = true
	if s.Depth <= 0 {
		s.Depth = MaxDepth
	}
	s.value(0)
	if s.At != len(s.B) {
		s.fail(s.At, Trailing)
	}
	return s.Err()
}

func (s *Scan) note(at int, rule Rule) {
	if s.Wide.Rule == "" {
		s.Wide = Fault{at, rule}
	}
}

func (s *Scan) value(depth int) {
	at := s.At
	switch major, info, arg := s.Head(); major {
	case Uint:
		if arg > MaxSafeInt {
			s.note(at, WideInteger)
		}
	case Negative:
		if arg > MaxSafeInt-1 {
			s.note(at, WideInteger)
		}
	case Bytes:
		s.content(at, arg)
	case Text:
		s.text(at, arg)
	case List, Map:
		s.entries(at, major, arg, depth+1)
	case Tag:
		s.link(at, arg)
	default:
		s.simple(at, info, arg)
	}
}

// entries walks over a list or map of n entries.
func (s *Scan) entries(at int, major byte, n uint64, depth int) {
	switch {
	case n > uint64(s.Left())>>(major-List): // an entry of a map is two items
		s.fail(at, Count)
	case depth > s.Depth:
		s.fail(at, Depth)
	case major == Map:
		s.dict(at, n, depth)
	default:
		for ; n > 0 && !s.Failed(); n-- {
			s.value(depth)
		}
	}
}

func (s *Scan) dict(at int, n uint64, depth int) {
	var last []byte
	for ; n > 0; n-- {
		from := s.At
		major, _, arg := s.Head()
		if major != Text {
			s.fail(from, KeyType)
			return
		}
		key := s.text(from, arg)
		if s.Failed() {
			return
		}
		whole := s.B[from:s.At] // the head is compared too: shorter keys come first
		if last != nil {
			switch c := bytes.Compare(last, whole); {
			case c == 0:
				s.fail(from, KeyTwice)
				return
			case c > 0:
				s.fail(from, KeyOrder)
				return
			}
		}
		last = whole
		if depth == 1 && at == 0 && s.Keys != nil && s.At < len(s.B) {
			s.Keys = append(s.Keys, Key{key, s.B[s.At] >> 5, s.B[s.At] & 31, s.At})
		}
		s.value(depth)
	}
}

func (s *Scan) link(at int, tag uint64) {
	from := s.At
	c := s.cid(at, tag)
	if s.Failed() {
		return
	}
	if s.OnLink != nil {
		s.OnLink(c, at)
	}
	if Plain(c) {
		return
	}
	switch used, _, err := cid.CidFromBytes(c); {
	case err != nil:
		s.fail(from, NotCID)
	case used != len(c):
		s.fail(from, AfterCID)
	default:
		s.note(at, WideLink)
	}
}

// Plain reports whether c is a CID as a store makes them: CIDv1, dag-cbor or raw, sha2-256.
func Plain[T string | []byte](c T) bool {
	return len(c) == 36 && c[0] == 1 && (c[1] == cid.DagCBOR || c[1] == cid.Raw) && c[2] == 0x12 && c[3] == 32
}

func (s *Scan) simple(at int, info byte, arg uint64) {
	switch info {
	case False, True, Null:
	case 25, 26:
		s.fail(at, ShortFloat)
	case Float:
		f := math.Float64frombits(arg)
		switch {
		case math.IsNaN(f) || math.IsInf(f, 0):
			s.fail(at, NotFinite)
		case f == 0 && math.Signbit(f):
			s.fail(at, NegativeZero)
		default:
			s.note(at, WideFloat)
		}
	default:
		s.fail(at, OtherSimple)
	}
}
