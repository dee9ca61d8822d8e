package cas

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// ToJSON shows a DAG-CBOR block as DAG-JSON, in the one form that its specification gives a value:
// links are {"/":"bafy…"}, bytes are {"/":{"bytes":"…"}}, keys are sorted by their bytes, floats
// written as ECMAScript does and with a point or an exponent
// (https://ipld.io/specs/codecs/dag-json/spec/). Bytes that are not strict DAG-CBOR are a
// *ScanError.
func ToJSON(data []byte) ([]byte, error) {
	if err := Scan(data, 0, nil); err != nil {
		return nil, err
	}
	s := scanner{b: data}
	return s.json(make([]byte, 0, 2*len(data))), nil
}

// json appends the value at hand; the block was scanned before, so heads are sound.
func (s *scanner) json(out []byte) []byte {
	major, info, n, _ := s.head()
	switch major {
	case 0:
		return strconv.AppendUint(out, n, 10)
	case 1:
		i := new(big.Int).SetUint64(n)
		return i.Not(i).Append(out, 10)
	case 2:
		return append(append(append(out, `{"/":{"bytes":"`...), s.base64(n)...), `"}}`...)
	case 3:
		return s.jsonText(out, n)
	case 4:
		out = append(out, '[')
		for i := range n {
			if i > 0 {
				out = append(out, ',')
			}
			out = s.json(out)
		}
		return append(out, ']')
	case 5:
		return s.jsonMap(out, n)
	case 6:
		_, _, n, _ := s.head()
		_, c, _ := cid.CidFromBytes(s.take(n)[1:])
		return append(append(append(out, `{"/":"`...), c.String()...), `"}`...)
	}
	switch info {
	case 20:
		return append(out, "false"...)
	case 21:
		return append(out, "true"...)
	case 22:
		return append(out, "null"...)
	}
	return protocol.AppendJSONFloat(out, math.Float64frombits(n))
}

// jsonMap appends a map of n entries. A block has them by length and then by bytes.
func (s *scanner) jsonMap(out []byte, n uint64) []byte {
	type entry struct{ key, text []byte }
	entries := make([]entry, n)
	for i := range entries {
		_, _, k, _ := s.head()
		entries[i].key = s.b[s.pos : s.pos+int(k)]
		entries[i].text = s.json(append(s.jsonText(nil, k), ':'))
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	out = append(out, '{')
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e.text...)
	}
	return append(out, '}')
}

func (s *scanner) take(n uint64) []byte {
	b := s.b[s.pos : s.pos+int(n)]
	s.pos += int(n)
	return b
}

func (s *scanner) base64(n uint64) string { return base64.RawStdEncoding.EncodeToString(s.take(n)) }

func (s *scanner) jsonText(out []byte, n uint64) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(string(s.take(n))); err != nil {
		panic("cas: a string does not encode: " + err.Error())
	}
	return append(out, strings.TrimSuffix(b.String(), "\n")...)
}
