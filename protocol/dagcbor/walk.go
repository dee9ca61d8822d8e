// Package dagcbor reads and writes DAG-CBOR by its bytes: it walks over items without building
// values, checks that a block is strict, and shows it as DAG-JSON.
//
//	Walk   steps over items that were checked when they were stored
//	Scan   a Walk over a whole block, which lets nothing pass but strict DAG-CBOR
//
// Walk.Head is the only reader of heads; Walk.Strict says how strict it is. No input makes a Walk
// read out of bounds or loop forever.
//
// # Not here
//
// Values of Go: records are encoded and decoded by fxamacker/cbor, in protocol and cas.
package dagcbor

import (
	"encoding/binary"
	"unicode/utf8"
)

// The major types of CBOR.
const (
	Uint = iota
	Negative
	Bytes
	Text
	List
	Map
	Tag
	Simple
)

// The simple values, in the low five bits of their head.
const (
	False     = 20
	True      = 21
	Null      = 22
	Undefined = 23 // not in DAG-CBOR
	Float     = 27 // of 64 bits, in the argument
)

// MaxSafeInt is the largest integer that a float64 holds with all before it. The integers of
// records lie within ±MaxSafeInt.
const MaxSafeInt = 1<<53 - 1

// A Walk steps over items. Its first fault stays, and then nothing is left to read: everything
// reads as zero.
type Walk struct {
	B      []byte
	At     int  // where the next item begins
	Strict bool // lengths must have their shortest form, and texts must be UTF-8

	fault Fault
}

// Failed reports whether the walk met a fault.
func (w *Walk) Failed() bool { return w.fault.Rule != "" }

// Ended reports whether all was read, without a fault.
func (w *Walk) Ended() bool { return w.At == len(w.B) && w.fault.Rule == "" }

// Err is the first fault, a *Fault, or nil.
func (w *Walk) Err() error {
	if w.fault.Rule == "" {
		return nil
	}
	f := w.fault
	return &f
}

// Fail ends the walk: what was read is not what should be there.
func (w *Walk) Fail() { w.fail(w.At, Unexpected) }

// fail notes the first fault. Inlined it would make every reader slower by a tenth.
//
//go:noinline
func (w *Walk) fail(at int, rule Rule) {
	if w.fault.Rule == "" {
		w.fault = Fault{at, rule}
	}
	w.At = len(w.B)
}

// Left is how many bytes are left.
func (w *Walk) Left() int { return len(w.B) - w.At }

// Is reports whether the next item is of a major type.
func (w *Walk) Is(major byte) bool { return w.At < len(w.B) && w.B[w.At]>>5 == major }

// Want steps over exactly the bytes s.
func (w *Walk) Want(s string) {
	if w.Left() < len(s) || string(w.B[w.At:w.At+len(s)]) != s {
		w.Fail()
		return
	}
	w.At += len(s)
}

// Head reads the head of an item: its major type, and its argument. info is the low five bits,
// which name the simple values.
func (w *Walk) Head() (major, info byte, arg uint64) {
	at := w.At
	if at >= len(w.B) {
		w.fail(at, CutShort)
		return 0, 0, 0
	}
	major, info = w.B[at]>>5, w.B[at]&31
	if info < 24 {
		w.At = at + 1
		return major, info, uint64(info)
	}
	rest := w.B[at+1:]
	n := 1 << (info - 24)
	switch {
	case info == 31:
		w.fail(at, Indefinite)
		return 0, 0, 0
	case info > 27:
		w.fail(at, Reserved)
		return 0, 0, 0
	case len(rest) < n:
		w.fail(at, CutShort)
		return 0, 0, 0
	}
	least := uint64(24)
	switch n {
	case 1:
		arg = uint64(rest[0])
	case 2:
		arg, least = uint64(binary.BigEndian.Uint16(rest)), 1<<8
	case 4:
		arg, least = uint64(binary.BigEndian.Uint32(rest)), 1<<16
	default:
		arg, least = binary.BigEndian.Uint64(rest), 1<<32
	}
	if w.Strict && arg < least && major != Simple {
		w.fail(at, NotShortest)
		return 0, 0, 0
	}
	w.At = at + 1 + n
	return major, info, arg
}

// content reads the n bytes of a string; its head began at at.
func (w *Walk) content(at int, n uint64) []byte {
	if n > uint64(w.Left()) {
		w.fail(at, StringLength)
		return nil
	}
	from := w.At
	w.At += int(n)
	return w.B[from:w.At:w.At]
}

func (w *Walk) text(at int, n uint64) []byte {
	t := w.content(at, n)
	if w.Strict && !utf8.Valid(t) {
		w.fail(at, NotUTF8)
		return nil
	}
	return t
}

// Text reads a text. It shares B.
func (w *Walk) Text() []byte {
	at := w.At
	major, _, n := w.Head()
	if major != Text {
		w.fail(at, Unexpected)
		return nil
	}
	return w.text(at, n)
}

// Bytes reads a byte string. It shares B.
func (w *Walk) Bytes() []byte {
	at := w.At
	major, _, n := w.Head()
	if major != Bytes {
		w.fail(at, Unexpected)
		return nil
	}
	return w.content(at, n)
}

// Number reads an integer within ±2^53.
func (w *Walk) Number() int64 {
	at := w.At
	major, _, n := w.Head()
	if major > Negative || n > MaxSafeInt {
		w.fail(at, Unexpected)
		return 0
	}
	if major == Negative {
		return -1 - int64(n)
	}
	return int64(n)
}

// Null steps over a null, if one is next.
func (w *Walk) Null() bool {
	if w.At < len(w.B) && w.B[w.At] == Simple<<5|Null {
		w.At++
		return true
	}
	return false
}

// CID reads a link, and gives the bytes of its CID, which it does not look at.
func (w *Walk) CID() []byte {
	at := w.At
	major, _, tag := w.Head()
	if major != Tag {
		w.fail(at, Unexpected)
		return nil
	}
	return w.cid(at, tag)
}

// cid reads what follows the head of a tag.
func (w *Walk) cid(at int, tag uint64) []byte {
	if tag != 42 {
		w.fail(at, OtherTag)
		return nil
	}
	from := w.At
	major, _, n := w.Head()
	if major != Bytes || n == 0 {
		w.fail(from, TagContent)
		return nil
	}
	c := w.content(from, n)
	if len(c) == 0 {
		return nil
	}
	if c[0] != 0 {
		w.fail(w.At-len(c), Multibase)
		return nil
	}
	return c[1:]
}

// Item steps over one item and gives its bytes.
func (w *Walk) Item() []byte {
	from := w.At
	for open := uint64(1); open > 0 && !w.Failed(); open-- {
		at := w.At
		switch major, _, n := w.Head(); major {
		case Bytes, Text:
			w.content(at, n)
		case List, Map:
			if n > uint64(w.Left()) {
				w.fail(at, Count)
				return nil
			}
			open += n << (major - List)
		case Tag:
			open++
		}
	}
	if w.Failed() {
		return nil
	}
	return w.B[from:w.At:w.At]
}
