package dagcbor_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/ipfs/go-cid"

	"wf/protocol/dagcbor"
)

// No bytes lead a walk astray. What Check lets through is shown as the value that a decoder of
// others reads, with its keys in either order, and has one encoding.
func FuzzWalk(f *testing.F) {
	for _, v := range dagCBORVectors(f) {
		f.Add(v.data)
	}
	link := unhex(f, aLink)
	mode, err := cbor.EncOptions{Sort: cbor.SortLengthFirst}.EncMode()
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range []any{
		map[string]any{"a": []any{1, -1, "text", nil, true, false, 1.5, []byte("bytes")}, "link": cbor.RawMessage(link)},
		[]any{uint64(math.MaxUint64), int64(math.MinInt64), 3.0, "é\x00\"\\\n\t\r\b\f\u2028😀"},
		map[string]any{"b": 1, "aa": map[string]any{"c": nil, "bb": []any{}}},
		"", map[string]any{},
	} {
		b, err := mode.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(bytes.Repeat([]byte{0x81}, 200))
	f.Add([]byte{0x9b, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Add([]byte{0x5b, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := dagcbor.Walk{B: b}
		if item := w.Item(); len(item) > len(b) || w.At > len(b) {
			t.Fatal("an item is longer than its bytes")
		}
		w = dagcbor.Walk{B: b}
		walked := w.AppendJSON(nil)
		if err := dagcbor.Check(b); err != nil {
			return
		}
		if !w.Ended() {
			t.Fatalf("% x is strict, and the walk ends: %v", b, w.Err())
		}
		sorted, err := dagcbor.ToJSON(b)
		if err != nil {
			t.Fatal(err)
		}
		want := plain(t, decode(t, b))
		// cmp.Diff takes twice as long for each list around a list.
		for _, got := range []any{value(t, walked), value(t, sorted)} {
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("% x (-decoder +walk):\n%s", b, cmp.Diff(want, got))
			}
		}
		if bytes.Contains(b, []byte("\x61/")) {
			return // DAG-JSON keeps the key "/" for itself
		}
		if back, err := dagcbor.FromJSON(sorted); err != nil || !bytes.Equal(back, b) {
			t.Fatalf("% x → %s → % x, %v", b, sorted, back, err)
		}
	})
}

func decode(t *testing.T, b []byte) (v any) {
	t.Helper()
	mode, err := cbor.DecOptions{DefaultMapType: reflect.TypeFor[map[string]any](), IntDec: cbor.IntDecConvertSignedOrBigInt, MaxNestedLevels: 2 * dagcbor.MaxDepth,
		UnrecognizedTagToAny: cbor.UnrecognizedTagNumAndContentToAny}.DecMode()
	if err != nil {
		t.Fatal(err)
	}
	if err := mode.Unmarshal(b, &v); err != nil {
		t.Fatalf("% x is strict, and a decoder says: %v", b, err)
	}
	return v
}

// plain is a decoded value as value reads it.
func plain(t *testing.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, of := range v {
			out[k] = plain(t, of)
		}
		return out
	case []any:
		out := []any{}
		for _, of := range v {
			out = append(out, plain(t, of))
		}
		return out
	case int64:
		return big.NewInt(v).String()
	case big.Int:
		return v.String()
	case []byte:
		return map[string]any{"/": map[string]any{"bytes": "text " + base64.RawStdEncoding.EncodeToString(v)}}
	case string:
		return "text " + v
	case cbor.Tag:
		c, err := cid.Cast(v.Content.([]byte)[1:])
		if err != nil || v.Number != 42 {
			t.Fatalf("tag %d: %v", v.Number, err)
		}
		return map[string]any{"/": "text " + c.String()}
	}
	return v
}

// value reads JSON: integers become their digits, and a text begins with "text ".
func value(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return numbered(t, v)
}

func numbered(t *testing.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, of := range v {
			v[k] = numbered(t, of)
		}
	case []any:
		for i, of := range v {
			v[i] = numbered(t, of)
		}
	case string:
		return "text " + v
	case json.Number:
		if !strings.ContainsAny(v.String(), ".e") {
			return v.String()
		}
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	return v
}

// Every string is the JSON string that the standard library reads back, whatever its bytes.
func FuzzString(f *testing.F) {
	f.Add([]byte("plain text of some length, longer than a word"))
	f.Add([]byte("quote \" slash \\ control \x01\x1f\x7f line\n tab\t \b\f"))
	f.Add([]byte("é € 😀 \xff\xfe\xc3 \xed\xa0\x80 \u2028"))
	f.Fuzz(func(t *testing.T, s []byte) {
		var got string
		if err := json.Unmarshal(dagcbor.AppendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := string(bytes.ToValidUTF8(s, []byte("\ufffd"))); got != want && got != string([]rune(string(s))) {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func TestCIDsAreWrittenAsTheLibraryWritesThem(t *testing.T) {
	for _, text := range []string{
		"bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku", "QmNX6Tffavsya4xgBi2VJQnSuqy9GsxongxZZ9uZBqp16d", "bafyreigdmqpykrgxyaxtlafqpqhzrb7qy2rh75nldvfd4tucqmqqme5yje",
	} {
		c, err := cid.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(dagcbor.AppendCID(nil, c.Bytes())); got != c.String() {
			t.Errorf("%s is written %s", c, got)
		}
	}
}

// A walk reads again what was appended, and names the place where something else lies.
func TestAWalkReadsWhatWasAppended(t *testing.T) {
	c := unhex(t, aLink)[5:]
	b := dagcbor.AppendHead(nil, dagcbor.List, 7)
	for _, n := range []int64{0, -1, 1 << 40} {
		b = dagcbor.AppendInt(b, n)
	}
	b = dagcbor.AppendNull(dagcbor.AppendLink(dagcbor.AppendBytes(dagcbor.AppendText(b, "é"), []byte{1, 2}), c))
	if err := dagcbor.Check(b); err != nil {
		t.Fatal(err)
	}
	w := dagcbor.Walk{B: b, Strict: true}
	major, _, n := w.Head()
	got := []any{major, n, w.Number(), w.Number(), w.Number(), string(w.Text()), w.Bytes(), w.CID(), w.Null()}
	if d := cmp.Diff([]any{byte(dagcbor.List), uint64(7), int64(0), int64(-1), int64(1 << 40), "é", []byte{1, 2}, c, true}, got); d != "" || !w.Ended() {
		t.Errorf("%v\n%s", w.Err(), d)
	}
	for what, read := range map[string]func(*dagcbor.Walk){
		"a text":   func(w *dagcbor.Walk) { w.Text() },
		"bytes":    func(w *dagcbor.Walk) { w.Bytes() },
		"a number": func(w *dagcbor.Walk) { w.Number() },
		"a link":   func(w *dagcbor.Walk) { w.CID() },
	} {
		w := dagcbor.Walk{B: b, At: len(b) - 1} // the null
		read(&w)
		w.Want("\xf6") // nothing is left
		if f, ok := w.Err().(*dagcbor.Fault); !ok || f.Offset != len(b)-1 || f.Rule != dagcbor.Unexpected || w.Ended() {
			t.Errorf("%s: %v", what, w.Err())
		}
	}
}
