package dagcbor

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ipfs/go-cid"
)

const hex = "0123456789abcdef"

// jsonDepth is how deep lists and maps may nest where bytes are shown that were not scanned; what
// is stored nests less deep.
const jsonDepth = 2 * MaxDepth

// ToJSON shows a block as DAG-JSON, in the one form that its specification gives a value: links are
// {"/":"bafy…"}, bytes are {"/":{"bytes":"…"}}, keys are sorted by their bytes, floats written as
// ECMAScript does and with a point or an exponent (https://ipld.io/specs/codecs/dag-json/spec/).
// Bytes that are not strict DAG-CBOR are a *Fault.
func ToJSON(b []byte) ([]byte, error) {
	if err := Check(b); err != nil {
		return nil, err
	}
	w := Walk{B: b}
	dst := w.json(make([]byte, 0, 2*len(b)), jsonDepth, true)
	return dst, w.Err()
}

// AppendJSON appends the next item as ToJSON shows it, but with the keys in the order in which they
// are stored.
func (w *Walk) AppendJSON(dst []byte) []byte { return w.json(dst, jsonDepth, false) }

func (w *Walk) json(dst []byte, depth int, sorted bool) []byte {
	at := w.At
	if depth == 0 {
		w.fail(at, Depth)
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
		return append(base64.RawStdEncoding.AppendEncode(dst, w.content(at, n)), `"}}`...)
	case Text:
		return AppendString(dst, w.text(at, n))
	case List:
		dst = append(dst, '[')
		for i := uint64(0); i < n && !w.Failed(); i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.json(dst, depth-1, sorted)
		}
		return append(dst, ']')
	case Map:
		return w.jsonMap(dst, n, depth, sorted)
	case Tag:
		c := w.cid(at, n)
		if !Plain(c) {
			if _, err := cid.Cast(c); err != nil {
				w.fail(at, NotCID)
				return dst
			}
		}
		return AppendJSONLink(dst, c)
	}
	switch info {
	case False:
		return append(dst, "false"...)
	case True:
		return append(dst, "true"...)
	case Null:
		return append(dst, "null"...)
	case Float:
		return appendFloat(dst, math.Float64frombits(n))
	}
	w.fail(at, OtherSimple)
	return dst
}

// jsonMap appends a map of n entries. A block has them by length and then by bytes.
func (w *Walk) jsonMap(dst []byte, n uint64, depth int, sorted bool) []byte {
	type entry struct {
		key      []byte
		from, to int
	}
	var entries []entry
	dst = append(dst, '{')
	begin := len(dst)
	for i := uint64(0); i < n && !w.Failed(); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		from, key := len(dst), w.Text()
		dst = w.json(append(AppendString(dst, key), ':'), depth-1, sorted)
		if sorted {
			entries = append(entries, entry{key, from, len(dst)})
		}
	}
	byKey := func(a, b entry) int { return bytes.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(entries, byKey) {
		slices.SortFunc(entries, byKey)
		stored := bytes.Clone(dst)
		dst = dst[:begin]
		for _, e := range entries {
			dst = append(append(dst, stored[e.from:e.to]...), ',')
		}
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}')
}

// appendFloat appends a float as ECMAScript writes it, and with .0 where it would read as an
// integer. What is no number is null; no stored block holds one.
func appendFloat(dst []byte, f float64) []byte {
	b, err := json.Marshal(f)
	if err != nil {
		return append(dst, "null"...)
	}
	if !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return append(dst, b...)
}

// AppendString appends text as a JSON string, with the escapes of RFC 8785, section 3.2.2.2, and no
// others. Bytes that are not UTF-8 become U+FFFD.
func AppendString[T string | []byte](dst []byte, text T) []byte {
	s := []byte(text)
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if n := plain(s[i:]); n > 0 {
			i += n
			continue
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRune(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch short := strings.IndexByte("\"\\\b\f\n\r\t", c); {
		case c >= utf8.RuneSelf:
			dst = append(dst, "\ufffd"...)
		case short >= 0:
			dst = append(dst, '\\', `"\bfnrt`[short])
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// plain is how many bytes at the start of s are ASCII that JSON takes as it is. It looks at
// eight bytes at once: a byte is not plain when its high bit shows in one of these sums.
func plain(s []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		v := binary.LittleEndian.Uint64(s[n:])
		quote, slash := v^(ones*'"'), v^(ones*'\\')
		if (v|(v-ones*0x20)|(quote-ones)|(slash-ones))&highs != 0 {
			break
		}
	}
	for ; n < len(s); n++ {
		if c := s[n]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return n
}

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// AppendCID appends the text form of a CID, without the detours of the library for version 1. What
// is no CID is "".
func AppendCID[T string | []byte](dst []byte, c T) []byte {
	b := []byte(c)
	if Plain(b) {
		return base32Lower.AppendEncode(append(dst, 'b'), b)
	}
	l, err := cid.Cast(b)
	if err != nil {
		return dst
	}
	return append(dst, l.String()...)
}

// AppendJSONLink appends {"/":"cid"}.
func AppendJSONLink[T string | []byte](dst []byte, c T) []byte {
	return append(AppendCID(append(dst, `{"/":"`...), c), `"}`...)
}
