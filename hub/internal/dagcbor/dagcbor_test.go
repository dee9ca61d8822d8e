package dagcbor_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/hub/internal/dagcbor"
	"wf/protocol"
)

// No bytes lead a walk astray, and what the store takes is shown as the store shows it.
func FuzzWalk(f *testing.F) {
	link := cas.Raw([]byte("x")).Link
	for _, v := range []any{
		map[string]any{"a": []any{1, -1, "text", nil, true, false, 1.5, []byte("bytes")}, "link": link},
		[]any{uint64(math.MaxUint64), int64(math.MinInt64), 3.0, "é\x00\"\\\n\t\r\u2028😀"},
		protocol.Event{Kind: protocol.KindEvent, V: 1, Seq: 7, Prev: link, Data: []byte{0xa0}},
		"", map[string]any{},
	} {
		b, err := cas.Encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b.Data)
	}
	vectors, err := os.ReadFile("../../../testdata/vectors/dag-cbor.tsv")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(vectors)) {
		column := strings.Split(strings.TrimSpace(line), "\t")
		if b, err := hex.DecodeString(column[len(column)-1]); err == nil { // not the names of the columns
			f.Add(b)
		}
	}
	f.Add(bytes.Repeat([]byte{0x81}, 200))
	f.Add([]byte{0x9b, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Add([]byte{0x5b, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := dagcbor.Walk{B: b}
		if item := w.Item(); len(item) > len(b) {
			t.Fatal("an item is longer than its bytes")
		}
		w = dagcbor.Walk{B: b}
		got := w.AppendJSON(nil)
		want, err := cas.ToJSON(b)
		if err != nil {
			return
		}
		if w.Bad || len(w.B) > 0 {
			t.Fatalf("the store reads %x, the walk does not", b)
		}
		// cmp.Diff takes twice as long for each list around a list.
		if stored, walked := value(t, want), value(t, got); !reflect.DeepEqual(stored, walked) {
			t.Fatalf("%x (-store +walk):\n%s", b, cmp.Diff(stored, walked))
		}
	})
}

func value(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

// Every string is the JSON string that the standard library reads back, whatever its bytes.
func FuzzString(f *testing.F) {
	f.Add([]byte("plain text of some length, longer than a word"))
	f.Add([]byte("quote \" slash \\ control \x01\x1f\x7f line\n tab\t"))
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
	for _, l := range []protocol.Link{cas.Raw(nil).Link, cas.Raw([]byte("a")).Link} {
		if got := string(dagcbor.AppendCID(nil, l)); got != l.String() {
			t.Errorf("%s is written %s", l, got)
		}
	}
}
