package cas

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/ipfs/go-cid"
)

// ToJSON shows a DAG-CBOR block as DAG-JSON, for people: links are {"/":"bafy…"}, bytes are
// {"/":{"bytes":"…"}}, keys stand in the order of the block. Bytes that are not strict
// DAG-CBOR are a *ScanError.
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
		out = append(out, '{')
		for i := range n {
			if i > 0 {
				out = append(out, ',')
			}
			_, _, k, _ := s.head()
			out = append(s.jsonText(out, k), ':')
			out = s.json(out)
		}
		return append(out, '}')
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
	f := strconv.FormatFloat(math.Float64frombits(n), 'g', -1, 64)
	if !strings.ContainsAny(f, ".e") {
		f += ".0" // else it would read as an integer
	}
	return append(out, f...)
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
