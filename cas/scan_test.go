package cas

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"wf/protocol"
)

// aLink is the tag, head and multibase byte of a link, and the CID of no bytes at all.
const aLink = "d82a582500" + "01551220" + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// vector is a block of testdata/vectors/dag-cbor.tsv.
type vector struct {
	name, fault string // the text of the rule that is broken first, none where none is
	at          int    // the byte where it is
	data        []byte
}

func dagCBORVectors(t testing.TB) []vector {
	t.Helper()
	file, err := os.ReadFile("../testdata/vectors/dag-cbor.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var out []vector
	for line := range strings.Lines(string(file)) {
		column := strings.Split(strings.TrimSpace(line), "\t")
		if column[0] == "name" {
			continue
		}
		v := vector{name: column[0], fault: column[1], data: unhex(t, strings.Trim(column[3], "-"))}
		if v.fault != "none" {
			if v.at, err = strconv.Atoi(column[2]); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, v)
	}
	return out
}

func TestScanNamesTheFirstFault(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range dagCBORVectors(t) {
		seen[v.fault] = true
		t.Run(v.name, func(t *testing.T) {
			err := Scan(v.data, 0, nil)
			var got *ScanError
			switch {
			case v.fault == "none" && err != nil:
				t.Errorf("Scan(%x) = %v", v.data, err)
			case v.fault != "none" && (!errors.As(err, &got) || got.Rule.String() != v.fault || got.Offset != v.at):
				t.Errorf("Scan(%x) = %v; want byte %d: %s", v.data, err, v.at, v.fault)
			case v.fault != "none" && !errors.Is(err, protocol.ErrInvalidBlock):
				t.Errorf("%v does not wrap invalid_block", err)
			}
		})
	}
	for r := RuleCutShort; r <= RuleTrailing; r++ {
		if !seen[r.String()] {
			t.Errorf("no vector for: %s", r)
		}
	}
}

func TestScanYieldsEveryLinkInOrder(t *testing.T) {
	v0 := "d82a582300" + "1220" + strings.Repeat("11", 32)
	sha1 := "d82a581900" + "01701114" + strings.Repeat("22", 20)
	var got []string
	err := Scan(unhex(t, "83"+aLink+v0+sha1), 0, func(l protocol.Link) { got = append(got, l.String()) })
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0] != "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku" || !strings.HasPrefix(got[1], "Qm") {
		t.Errorf("links = %v", got)
	}
}

func TestProfileRefusesWhatTheCodecAllows(t *testing.T) {
	start := Raw(nil).Link
	good := protocol.Result{Kind: protocol.KindResult, V: 1, Start: start, Status: protocol.Done}
	b, err := Encode(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := Profile(b.Data); err != nil {
		t.Fatal(err)
	}
	cases := map[string]map[string]any{
		"a float":            {"kind": "result", "v": 1, "start": start, "parents": nil, "status": "done", "x": 1.5},
		"a big integer":      {"kind": "result", "v": 1, "start": start, "parents": nil, "status": "done", "x": int64(1) << 53},
		"a small integer":    {"kind": "result", "v": 1, "start": start, "parents": nil, "status": "done", "x": -int64(1) << 53},
		"a missing key":      {"kind": "result", "v": 1, "start": start, "parents": nil},
		"a key of its type":  {"kind": "result", "v": 1, "start": "bafy", "parents": nil, "status": "done"},
		"no version":         {"kind": "result", "start": start, "parents": nil, "status": "done"},
		"version zero":       {"kind": "result", "v": 0, "start": start, "parents": nil, "status": "done"},
		"a link not as ours": {"kind": "result", "v": 1, "start": must(protocol.ParseLink("QmNX6Tffavsya4xgBi2VJQnSuqy9GsxongxZZ9uZBqp16d")), "parents": nil, "status": "done"},
	}
	for name, v := range cases {
		_, err := Encode(v)
		var p *ProfileError
		if !errors.As(err, &p) || !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("%s: %v, want a ProfileError", name, err)
		}
		v["kind"] = "note"
		if _, err := Encode(v); err != nil {
			t.Errorf("%s, in a block of another kind: %v", name, err)
		}
	}
	limit := map[string]any{"kind": "result", "v": 1, "start": start, "parents": nil, "status": "done",
		"hi": int64(protocol.MaxSafeInt), "lo": int64(-protocol.MaxSafeInt)}
	if _, err := Encode(limit); err != nil {
		t.Errorf("±(2^53−1): %v", err)
	}
}

func TestW06OldStepRecordWithoutEdgePrompt(t *testing.T) {
	start := Raw(nil).Link
	b, err := Encode(map[string]any{"kind": "step", "v": 1, "start": start, "parents": []protocol.Link{start},
		"role": "coder", "visit": 1, "status": "ok", "output": start})
	if err != nil {
		t.Fatal(err)
	}
	var r protocol.StepRecord
	if err := Decode(b.Data, &r); err != nil {
		t.Fatal(err)
	}
	if r.EdgePrompt != "" || r.Role != "coder" || r.Output != start || r.Resumes.Defined() {
		t.Errorf("decoded %+v", r)
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzScan(f *testing.F) {
	for _, v := range dagCBORVectors(f) {
		f.Add(v.data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Scan(b, 0, nil)
		if perr := Profile(b); err != nil && perr == nil {
			t.Fatalf("Profile passes what Scan refuses: %v", err)
		}
		if err != nil {
			return
		}
		// What the scan lets through reads, and has one encoding.
		j, err := ToJSON(b)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("\x61/")) {
			return // DAG-JSON keeps the key "/" for itself
		}
		if back, err := Put("dag-json", j); err != nil || !bytes.Equal(back.Data, b) {
			t.Fatalf("% x → %s → % x, %v", b, j, back.Data, err)
		}
	})
}
