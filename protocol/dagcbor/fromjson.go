package dagcbor

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ipfs/go-cid"
)

// FromJSON transcodes DAG-JSON to the DAG-CBOR of the same value. The error is a *Fault.
func FromJSON(data []byte) ([]byte, error) {
	t := transcoder{in: json.NewDecoder(bytes.NewReader(data))}
	t.in.UseNumber()
	if at := invalidUTF8(data); at >= 0 {
		return nil, jsonError(at, "text must be valid UTF-8")
	}
	if at := loneSurrogate(data); at >= 0 {
		return nil, jsonError(at, "a lone surrogate is no character")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		at := len(data)
		if s, ok := err.(*json.SyntaxError); ok {
			at = int(s.Offset)
		}
		return nil, jsonError(at, err.Error())
	}
	return t.value(nil, 0)
}

func jsonError(at int, rule string) error { return &Fault{at, Rule(rule)} }

func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// loneSurrogate finds a \u escape that is half a character; the decoder would replace it
// without a word.
func loneSurrogate(b []byte) int {
	unit := func(at int) (uint64, bool) {
		if at+6 > len(b) || b[at] != '\\' || b[at+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(b[at+2:at+6]), 16, 16)
		return n, err == nil
	}
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		switch u, ok := unit(i); {
		case !ok:
			i++ // another escape
		case u >= 0xdc00 && u <= 0xdfff:
			return i
		case u >= 0xd800 && u <= 0xdbff:
			low, ok := unit(i + 6)
			if !ok || low < 0xdc00 || low > 0xdfff {
				return i
			}
			i += 11
		default:
			i += 5
		}
	}
	return -1
}

// transcoder turns the tokens of valid JSON into DAG-CBOR.
type transcoder struct{ in *json.Decoder }

func (t *transcoder) value(out []byte, depth int) ([]byte, error) {
	at := int(t.in.InputOffset())
	// Two more than the block may have: bytes and links are objects in JSON. The scan of the
	// block keeps its own bound.
	if depth > MaxDepth+2 {
		return nil, &Fault{at, Depth}
	}
	token, err := t.in.Token()
	if err != nil {
		return nil, jsonError(at, err.Error())
	}
	switch v := token.(type) {
	case nil:
		return AppendNull(out), nil
	case bool:
		if v {
			return AppendHead(out, Simple, True), nil
		}
		return AppendHead(out, Simple, False), nil
	case string:
		return AppendText(out, v), nil
	case json.Number:
		return appendNumber(out, v.String(), at)
	case json.Delim:
		if v == '{' {
			return t.object(out, depth+1)
		}
		return t.array(out, depth+1)
	}
	return nil, jsonError(at, fmt.Sprintf("unexpected %v", token))
}

func (t *transcoder) array(out []byte, depth int) ([]byte, error) {
	var items []byte
	n := uint64(0)
	for t.in.More() {
		var err error
		if items, err = t.value(items, depth); err != nil {
			return nil, err
		}
		n++
	}
	if _, err := t.in.Token(); err != nil {
		return nil, jsonError(int(t.in.InputOffset()), err.Error())
	}
	return append(AppendHead(out, List, n), items...), nil
}

func (t *transcoder) object(out []byte, depth int) ([]byte, error) {
	type entry struct {
		name       string
		key, value []byte
	}
	var entries []entry
	for t.in.More() {
		at := int(t.in.InputOffset())
		token, err := t.in.Token()
		if err != nil {
			return nil, jsonError(at, err.Error())
		}
		name, ok := token.(string)
		if !ok {
			return nil, jsonError(at, string(KeyType))
		}
		value, err := t.value(nil, depth)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name, AppendText(nil, name), value})
	}
	if _, err := t.in.Token(); err != nil {
		return nil, jsonError(int(t.in.InputOffset()), err.Error())
	}
	at := int(t.in.InputOffset())
	if len(entries) == 1 && entries[0].name == "/" {
		if special, err := reserved(entries[0].value); special != nil || err != nil {
			if err != nil {
				return nil, jsonError(at, err.Error())
			}
			return append(out, special...), nil
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	out = AppendHead(out, Map, uint64(len(entries)))
	for i, e := range entries {
		if i > 0 && entries[i-1].name == e.name {
			return nil, jsonError(at, fmt.Sprintf("%s (%q)", KeyTwice, e.name))
		}
		out = append(append(out, e.key...), e.value...)
	}
	return out, nil
}

// reserved reads what DAG-JSON keeps under the single key "/": a CID as text, or {"bytes":
// base64}. Anything else there is nil: a plain map.
func reserved(value []byte) ([]byte, error) {
	if s, ok := textOf(value); ok {
		c, err := cid.Decode(s)
		if err != nil {
			return nil, fmt.Errorf("%q is no CID: %w", s, err)
		}
		return AppendLink(nil, c.KeyString()), nil
	}
	const bytesKey = "\xa1\x65bytes"
	if !bytes.HasPrefix(value, []byte(bytesKey)) {
		return nil, nil
	}
	s, ok := textOf(value[len(bytesKey):])
	if !ok {
		return nil, nil
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil, fmt.Errorf("bytes must be base64: %w", err)
	}
	return AppendBytes(nil, raw), nil
}

// textOf is the content of an encoded text string.
func textOf(value []byte) (string, bool) {
	w := Walk{B: value}
	s := w.Text()
	return string(s), !w.Failed()
}

// appendNumber keeps the distinction of DAG-JSON: a number with a point or an exponent is a
// float, any other an integer between −2^64 and 2^64−1.
func appendNumber(out []byte, s string, at int) ([]byte, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := json.Number(s).Float64()
		if err != nil {
			return nil, jsonError(at, string(NotFinite))
		}
		return binary.BigEndian.AppendUint64(append(out, Simple<<5|Float), math.Float64bits(f)), nil
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, jsonError(at, "malformed number")
	}
	if n.Sign() >= 0 && n.IsUint64() {
		return AppendHead(out, Uint, n.Uint64()), nil
	}
	if n.Not(n); n.Sign() >= 0 && n.IsUint64() { // −1−n, as CBOR has it
		return AppendHead(out, Negative, n.Uint64()), nil
	}
	return nil, jsonError(at, "an integer must fit 64 bits")
}
