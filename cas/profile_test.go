package cas

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

func TestProfileRefusesWhatTheCodecAllows(t *testing.T) {
	start := Raw(nil).Link
	good := protocol.Result{Kind: protocol.KindResult, V: 1, Start: start, Status: protocol.Done}
	b, err := Encode(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := profile(b.Data); err != nil {
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

func FuzzScan(f *testing.F) {
	vectors, err := os.ReadFile("../testdata/vectors/dag-cbor.tsv")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(vectors)) {
		column := strings.Split(strings.TrimSpace(line), "\t")
		if b, err := hex.DecodeString(column[len(column)-1]); err == nil { // not the names of the columns
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := dagcbor.Check(b)
		if perr := profile(b); err != nil && perr == nil {
			t.Fatalf("the profile passes what Scan refuses: %v", err)
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
