package cas

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// MaxDepth is how deep lists and maps may nest in a block of this store.
const MaxDepth = 64

// Rule is what a block must keep to be strict DAG-CBOR; Scan tests them in this order.
type Rule uint8

// The rules. Each is named after what breaks it.
const (
	RuleCutShort Rule = iota + 1
	RuleReserved
	RuleIndefinite
	RuleNotShortest
	RuleStringLength
	RuleUTF8
	RuleCount
	RuleKeyType
	RuleKeyTwice
	RuleKeyOrder
	RuleDepth
	RuleTag
	RuleTagContent
	RuleMultibase
	RuleCID
	RuleAfterCID
	RuleShortFloat
	RuleNotFinite
	RuleNegativeZero
	RuleSimple
	RuleTrailing
)

var ruleText = [...]string{
	RuleCutShort:     "the block ends inside an item",
	RuleReserved:     "additional information 28 to 30 is reserved",
	RuleIndefinite:   "indefinite lengths are forbidden",
	RuleNotShortest:  "a number or length must have its shortest form",
	RuleStringLength: "a string is longer than the rest of the block",
	RuleUTF8:         "text must be valid UTF-8",
	RuleCount:        "a list or map announces more items than bytes follow",
	RuleKeyType:      "a map key must be text",
	RuleKeyTwice:     "a map key appears twice",
	RuleKeyOrder:     "map keys must be sorted, shorter first, then bytewise",
	RuleDepth:        "lists and maps nest too deep",
	RuleTag:          "the only tag is 42, a link",
	RuleTagContent:   "tag 42 must hold a byte string that is not empty",
	RuleMultibase:    "a link must begin with the byte 00",
	RuleCID:          "a link must hold a CID",
	RuleAfterCID:     "bytes follow the CID of a link",
	RuleShortFloat:   "floats must have 64 bits",
	RuleNotFinite:    "NaN and infinities are forbidden",
	RuleNegativeZero: "-0.0 is forbidden",
	RuleSimple:       "the only simple values are false, true and null",
	RuleTrailing:     "bytes follow the value",
}

// String says the rule in a few words.
func (r Rule) String() string {
	if int(r) < len(ruleText) && ruleText[r] != "" {
		return ruleText[r]
	}
	return fmt.Sprintf("rule %d", uint8(r))
}

// ScanError is the first fault of a block: where, and which rule it breaks. It wraps
// protocol.ErrInvalidBlock.
type ScanError struct {
	Offset int // in bytes
	Rule   Rule
}

func (e *ScanError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Rule) }

// Unwrap gives protocol.ErrInvalidBlock.
func (e *ScanError) Unwrap() error { return protocol.ErrInvalidBlock }

// Scan checks that b is one value in strict DAG-CBOR: one value has one encoding, and so one
// CID. Decoders let much more through, so this runs on every write and in every verify. It
// needs no schema and calls onLink, which may be nil, for every link in order. maxDepth ≤ 0
// is MaxDepth. The error is a *ScanError.
//
// The rules are those of the DAG-CBOR specification, "Strictness", plus no −0.0.
func Scan(b []byte, maxDepth int, onLink func(protocol.Link)) error {
	s := scanner{b: b, max: maxDepth, onLink: onLink}
	if maxDepth <= 0 {
		s.max = MaxDepth
	}
	return s.run()
}

// scanner walks a block once. On its way it notes what the record profile asks about.
type scanner struct {
	b      []byte
	pos    int
	max    int
	onLink func(protocol.Link)
	onRaw  func(c []byte, offset int) // the same, without making a Link

	keys   []topKey // of the outermost map
	strict violation
}

// topKey is an entry of the outermost map: the bytes of its key, the first byte and the
// place of its value.
type topKey struct {
	key   []byte
	head  byte
	value int
}

// violation is the first breach of the profile's rules for values; rule "" is none.
type violation struct {
	offset int
	rule   string
}

func (s *scanner) note(offset int, rule string) {
	if s.strict.rule == "" {
		s.strict = violation{offset, rule}
	}
}

func (s *scanner) run() error {
	if err := s.value(0); err != nil {
		return err
	}
	if s.pos != len(s.b) {
		return &ScanError{s.pos, RuleTrailing}
	}
	return nil
}

// head reads an initial byte and its argument.
func (s *scanner) head() (major, info byte, arg uint64, err error) {
	at := s.pos
	if at >= len(s.b) {
		return 0, 0, 0, &ScanError{at, RuleCutShort}
	}
	major, info = s.b[at]>>5, s.b[at]&31
	rest := s.b[at+1:]
	if info < 24 {
		s.pos = at + 1
		return major, info, uint64(info), nil
	}
	n, least := 0, uint64(0)
	switch info {
	case 24:
		n, least = 1, 24
	case 25:
		n, least = 2, 1<<8
	case 26:
		n, least = 4, 1<<16
	case 27:
		n, least = 8, 1<<32
	case 31:
		return 0, 0, 0, &ScanError{at, RuleIndefinite}
	default:
		return 0, 0, 0, &ScanError{at, RuleReserved}
	}
	if len(rest) < n {
		return 0, 0, 0, &ScanError{at, RuleCutShort}
	}
	switch n {
	case 1:
		arg = uint64(rest[0])
	case 2:
		arg = uint64(binary.BigEndian.Uint16(rest))
	case 4:
		arg = uint64(binary.BigEndian.Uint32(rest))
	case 8:
		arg = binary.BigEndian.Uint64(rest)
	}
	if major != 7 && arg < least {
		return 0, 0, 0, &ScanError{at, RuleNotShortest}
	}
	s.pos = at + 1 + n
	return major, info, arg, nil
}

// text checks a text string of n bytes whose head began at at.
func (s *scanner) text(at int, n uint64) ([]byte, error) {
	if n > uint64(len(s.b)-s.pos) {
		return nil, &ScanError{at, RuleStringLength}
	}
	t := s.b[s.pos : s.pos+int(n)]
	if !utf8.Valid(t) {
		return nil, &ScanError{at, RuleUTF8}
	}
	s.pos += int(n)
	return t, nil
}

func (s *scanner) value(depth int) error {
	at := s.pos
	major, info, arg, err := s.head()
	if err != nil {
		return err
	}
	switch major {
	case 0:
		if arg > protocol.MaxSafeInt {
			s.note(at, "integers of records lie within ±(2^53−1)")
		}
	case 1:
		if arg > protocol.MaxSafeInt-1 {
			s.note(at, "integers of records lie within ±(2^53−1)")
		}
	case 2:
		if arg > uint64(len(s.b)-s.pos) {
			return &ScanError{at, RuleStringLength}
		}
		s.pos += int(arg)
	case 3:
		_, err = s.text(at, arg)
		return err
	case 4:
		return s.list(at, arg, depth+1)
	case 5:
		return s.dict(at, arg, depth+1)
	case 6:
		return s.link(at, arg)
	default:
		return s.simple(at, info, arg)
	}
	return nil
}

func (s *scanner) list(at int, n uint64, depth int) error {
	if n > uint64(len(s.b)-s.pos) {
		return &ScanError{at, RuleCount}
	}
	if depth > s.max {
		return &ScanError{at, RuleDepth}
	}
	for ; n > 0; n-- {
		if err := s.value(depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) dict(at int, n uint64, depth int) error {
	if n > uint64(len(s.b)-s.pos)/2 {
		return &ScanError{at, RuleCount}
	}
	if depth > s.max {
		return &ScanError{at, RuleDepth}
	}
	var last []byte
	for ; n > 0; n-- {
		from := s.pos
		major, _, arg, err := s.head()
		if err != nil {
			return err
		}
		if major != 3 {
			return &ScanError{from, RuleKeyType}
		}
		key, err := s.text(from, arg)
		if err != nil {
			return err
		}
		whole := s.b[from:s.pos] // the head is compared too: shorter keys come first
		if last != nil {
			switch c := bytes.Compare(last, whole); {
			case c == 0:
				return &ScanError{from, RuleKeyTwice}
			case c > 0:
				return &ScanError{from, RuleKeyOrder}
			}
		}
		last = whole
		if depth == 1 && at == 0 && s.keys != nil && s.pos < len(s.b) {
			s.keys = append(s.keys, topKey{key, s.b[s.pos], s.pos})
		}
		if err := s.value(depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) link(at int, tag uint64) error {
	if tag != 42 {
		return &ScanError{at, RuleTag}
	}
	from := s.pos
	major, _, n, err := s.head()
	if err != nil {
		return err
	}
	if major != 2 || n == 0 {
		return &ScanError{from, RuleTagContent}
	}
	if n > uint64(len(s.b)-s.pos) {
		return &ScanError{from, RuleStringLength}
	}
	c := s.b[s.pos : s.pos+int(n)]
	if c[0] != 0 {
		return &ScanError{s.pos, RuleMultibase}
	}
	c = c[1:]
	s.pos += int(n)
	if s.onRaw != nil {
		s.onRaw(c, at)
	}
	if plain(c) {
		if s.onLink != nil {
			l, err := protocol.CastLink(c)
			if err != nil {
				return &ScanError{from, RuleCID}
			}
			s.onLink(l)
		}
		return nil
	}
	used, parsed, err := cid.CidFromBytes(c)
	if err != nil {
		return &ScanError{from, RuleCID}
	}
	if used != len(c) {
		return &ScanError{from, RuleAfterCID}
	}
	s.note(at, "links of records are CIDv1, sha2-256, dag-cbor or raw")
	if s.onLink != nil {
		s.onLink(protocol.NewLink(parsed))
	}
	return nil
}

// plain reports whether c is a CID as this store makes them: CIDv1, dag-cbor or raw, sha2-256.
func plain(c []byte) bool {
	return len(c) == 36 && c[0] == 1 && (c[1] == cid.DagCBOR || c[1] == cid.Raw) && c[2] == 0x12 && c[3] == 32
}

func (s *scanner) simple(at int, info byte, arg uint64) error {
	switch info {
	case 20, 21, 22:
		return nil
	case 25, 26:
		return &ScanError{at, RuleShortFloat}
	case 27:
		f := math.Float64frombits(arg)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return &ScanError{at, RuleNotFinite}
		}
		if f == 0 && math.Signbit(f) {
			return &ScanError{at, RuleNegativeZero}
		}
		s.note(at, "records hold no floats")
		return nil
	}
	return &ScanError{at, RuleSimple}
}
