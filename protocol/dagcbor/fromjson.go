package dagcbor

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ipfs/go-cid"
)

// FromJSON transcodes DAG-JSON to the DAG-CBOR of the same value. The error is a *Fault.
func FromJSON(data []byte) ([]byte, error) {
	t := transcoder{JSON{B: data}}
	t.Space()
	out, err := t.value(nil, 0)
	if err == nil {
		err = t.End()
	}
	return out, err
}

// transcoder turns JSON into DAG-CBOR.
type transcoder struct{ JSON }

func (t *transcoder) value(out []byte, depth int) ([]byte, error) {
	// Two more than the block may have: bytes and links are objects in JSON. The scan of the
	// block keeps its own bound.
	if depth > MaxDepth+2 {
		return nil, &Fault{t.At, Depth}
	}
	switch b := t.Next(); {
	case b == '{':
		return t.object(out, depth+1)
	case b == '[':
		return t.array(out, depth+1)
	case b == '"':
		s, err := t.Text()
		return AppendText(out, s), err
	case b == '-' || b >= '0' && b <= '9':
		return t.number(out)
	}
	word, err := t.Word()
	return AppendHead(out, Simple, map[string]uint64{"true": True, "false": False, "null": Null}[word]), err
}

func (t *transcoder) array(out []byte, depth int) ([]byte, error) {
	t.At++
	var items []byte
	for n := 0; ; n++ {
		more, err := t.More(n, ']')
		if err != nil || !more {
			return append(AppendHead(out, List, uint64(n)), items...), err
		}
		if items, err = t.value(items, depth); err != nil {
			return nil, err
		}
	}
}

func (t *transcoder) object(out []byte, depth int) ([]byte, error) {
	type entry struct {
		name       string
		key, value []byte
	}
	t.At++
	var entries []entry
	for {
		more, err := t.More(len(entries), '}')
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		name, err := t.Key()
		if err != nil {
			return nil, err
		}
		value, err := t.value(nil, depth)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name, AppendText(nil, name), value})
	}
	if len(entries) == 1 && entries[0].name == "/" {
		if special, err := reserved(entries[0].value); err != nil {
			return nil, t.Fail("%v", err)
		} else if special != nil {
			return append(out, special...), nil
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	out = AppendHead(out, Map, uint64(len(entries)))
	for i, e := range entries {
		if i > 0 && entries[i-1].name == e.name {
			return nil, t.Fail("%s (%q)", KeyTwice, e.name)
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

// number keeps the distinction of DAG-JSON: a number with a point or an exponent is a
// float, any other an integer between −2^64 and 2^64−1.
func (t *transcoder) number(out []byte) ([]byte, error) {
	at := t.At
	s, err := t.Number()
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, &Fault{at, NotFinite}
		}
		return binary.BigEndian.AppendUint64(append(out, Simple<<5|Float), math.Float64bits(f)), nil
	}
	n, _ := new(big.Int).SetString(s, 10)
	if n.Sign() >= 0 && n.IsUint64() {
		return AppendHead(out, Uint, n.Uint64()), nil
	}
	if n.Not(n); n.Sign() >= 0 && n.IsUint64() { // −1−n, as CBOR has it
		return AppendHead(out, Negative, n.Uint64()), nil
	}
	return nil, &Fault{at, "an integer must fit 64 bits"}
}
