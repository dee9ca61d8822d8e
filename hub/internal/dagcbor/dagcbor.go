// Package dagcbor walks over stored bytes and shows them as JSON, without building values.
//
// The bytes were scanned strictly when they were stored and hashed when they were read; here
// only what a walk needs is checked, so that no input makes it read out of bounds or for ever.
package dagcbor

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"wf/protocol"
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

// maxDepth is how deep lists and maps may nest; what is stored nests less deep.
const maxDepth = 128

// A Walk steps over items. The first surprise sets Bad, and then nothing is left to read.
type Walk struct {
	B   []byte
	Bad bool
}

func (w *Walk) fail() { w.Bad, w.B = true, nil }

// Want steps over exactly the bytes s.
func (w *Walk) Want(s string) {
	if len(w.B) < len(s) || string(w.B[:len(s)]) != s {
		w.fail()
		return
	}
	w.B = w.B[len(s):]
}

// Head reads the head of an item: its major type, and its argument. info is the low five bits,
// which name the simple values.
func (w *Walk) Head() (major, info byte, arg uint64) {
	if len(w.B) == 0 {
		w.fail()
		return 0, 0, 0
	}
	major, info = w.B[0]>>5, w.B[0]&31
	w.B = w.B[1:]
	if info < 24 {
		return major, info, uint64(info)
	}
	n := 1 << (info - 24)
	if info > 27 || len(w.B) < n {
		w.fail()
		return 0, 0, 0
	}
	switch n {
	case 1:
		arg = uint64(w.B[0])
	case 2:
		arg = uint64(binary.BigEndian.Uint16(w.B))
	case 4:
		arg = uint64(binary.BigEndian.Uint32(w.B))
	default:
		arg = binary.BigEndian.Uint64(w.B)
	}
	w.B = w.B[n:]
	return major, info, arg
}

// Take reads the next n bytes.
func (w *Walk) Take(n uint64) []byte {
	if n > uint64(len(w.B)) {
		w.fail()
		return nil
	}
	b := w.B[:n:n]
	w.B = w.B[n:]
	return b
}

// String reads the head and the content of a text or of bytes.
func (w *Walk) String(want byte) []byte {
	major, _, n := w.Head()
	if major != want {
		w.fail()
	}
	return w.Take(n)
}

// Number reads an integer within ±2^53.
func (w *Walk) Number() int64 {
	major, _, n := w.Head()
	if major > Negative || n > protocol.MaxSafeInt {
		w.fail()
		return 0
	}
	if major == Negative {
		return -1 - int64(n)
	}
	return int64(n)
}

// Null steps over a null, if one is next.
func (w *Walk) Null() bool {
	if len(w.B) > 0 && w.B[0] == 0xf6 {
		w.B = w.B[1:]
		return true
	}
	return false
}

// Link reads tag 42 and its CID.
func (w *Walk) Link() protocol.Link {
	w.Want("\xd8\x2a")
	b := w.String(Bytes)
	if w.Bad || len(b) == 0 || b[0] != 0 {
		w.fail()
		return protocol.Link{}
	}
	l, err := protocol.CastLink(b[1:])
	if err != nil {
		w.fail()
	}
	return l
}

// Item steps over one item and gives its bytes.
func (w *Walk) Item() []byte {
	start := w.B
	for open := uint64(1); open > 0 && !w.Bad; open-- {
		switch major, _, n := w.Head(); major {
		case Bytes, Text:
			w.Take(n)
		case List, Map:
			if n > uint64(len(w.B)) {
				w.fail()
				return nil
			}
			open += n << (major - List)
		case Tag:
			open++
		}
	}
	if w.Bad {
		return nil
	}
	n := len(start) - len(w.B)
	return start[:n:n]
}

// AppendJSON appends the next item as DAG-JSON: links are {"/":"bafy…"}, bytes are
// {"/":{"bytes":"…"}}, keys stand in the order they are stored in.
func (w *Walk) AppendJSON(dst []byte) []byte { return w.json(dst, maxDepth) }

func (w *Walk) json(dst []byte, depth int) []byte {
	if depth == 0 {
		w.fail()
		return dst
	}
	major, info, n := w.Head()
	switch major {
	case Uint:
		return strconv.AppendUint(dst, n, 10)
	case Negative:
		if n == math.MaxUint64 {
			return append(dst, "-18446744073709551616"...)
		}
		return strconv.AppendUint(append(dst, '-'), n+1, 10)
	case Bytes:
		dst = append(dst, `{"/":{"bytes":"`...)
		return append(base64.RawStdEncoding.AppendEncode(dst, w.Take(n)), `"}}`...)
	case Text:
		return AppendString(dst, w.Take(n))
	case List:
		dst = append(dst, '[')
		for i := uint64(0); i < n && !w.Bad; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.json(dst, depth-1)
		}
		return append(dst, ']')
	case Map:
		dst = append(dst, '{')
		for i := uint64(0); i < n && !w.Bad; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, w.String(Text)), ':')
			dst = w.json(dst, depth-1)
		}
		return append(dst, '}')
	case Tag:
		b := w.String(Bytes)
		if n != 42 || len(b) < 2 {
			w.fail()
			return dst
		}
		l, err := protocol.CastLink(b[1:])
		if err != nil {
			w.fail()
			return dst
		}
		return AppendLink(dst, l)
	}
	switch info {
	case 20:
		return append(dst, "false"...)
	case 21:
		return append(dst, "true"...)
	case 22:
		return append(dst, "null"...)
	case 27:
		return protocol.AppendJSONFloat(dst, math.Float64frombits(n))
	}
	w.fail()
	return dst
}

// AppendLink appends {"/":"cid"}.
func AppendLink(dst []byte, l protocol.Link) []byte {
	return append(AppendCID(append(dst, `{"/":"`...), l), `"}`...)
}
