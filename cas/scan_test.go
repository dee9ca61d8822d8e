package cas

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"wf/protocol"
)

// aLink is the tag, head and multibase byte of a link, and the CID of no bytes at all.
const aLink = "d82a582500" + "01551220" + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestScanNamesTheFirstFault(t *testing.T) {
	cases := []struct {
		name, hex string
		rule      Rule
		offset    int
	}{
		{"nothing", "", RuleCutShort, 0},
		{"an argument cut short", "19 01", RuleCutShort, 0},
		{"a list that ends in a number", "82 19 01", RuleCutShort, 1},
		{"a map that ends before its value", "a1 61 61", RuleCutShort, 3},
		{"reserved additional information", "1c", RuleReserved, 0},
		{"an indefinite list", "9f 01 ff", RuleIndefinite, 0},
		{"a break alone", "ff", RuleIndefinite, 0},
		{"23 in two bytes", "18 17", RuleNotShortest, 0},
		{"255 in three bytes", "19 00ff", RuleNotShortest, 0},
		{"65535 in five bytes", "1a 0000ffff", RuleNotShortest, 0},
		{"2^32-1 in nine bytes", "1b 00000000ffffffff", RuleNotShortest, 0},
		{"a length in two bytes", "78 01 61", RuleNotShortest, 0},
		{"tag 42 in three bytes", "d9 002a 41 00", RuleNotShortest, 0},
		{"text longer than the block", "63 61 61", RuleStringLength, 0},
		{"bytes longer than the block", "5b ffffffffffffffff 00", RuleStringLength, 0},
		{"text that is not UTF-8", "61 ff", RuleUTF8, 0},
		{"a list of 2^32 items", "9b 0000000100000000 00", RuleCount, 0},
		{"a map with more pairs than half the bytes", "a2 61 61 01", RuleCount, 0},
		{"an integer key", "a1 01 02", RuleKeyType, 1},
		{"a key twice", "a2 61 61 01 61 61 02", RuleKeyTwice, 4},
		{"keys out of order", "a2 61 62 01 61 61 02", RuleKeyOrder, 4},
		{"a longer key first", "a2 62 61 61 01 61 62 02", RuleKeyOrder, 5},
		{"too deep", strings.Repeat("81", 65) + "01", RuleDepth, 64},
		{"tag 0", "c0 60", RuleTag, 0},
		{"tag 42 on text", "d82a 61 61", RuleTagContent, 2},
		{"tag 42 on no bytes", "d82a 40", RuleTagContent, 2},
		{"a link without 00", "d82a 42 01 02", RuleMultibase, 3},
		{"a link that is no CID", "d82a 43 00 01 02", RuleCID, 2},
		{"a link cut short", aLink[:20], RuleStringLength, 2},
		{"bytes after the CID", strings.Replace(aLink, "5825", "5826", 1) + "00", RuleAfterCID, 2},
		{"a half float", "f9 3c00", RuleShortFloat, 0},
		{"a single float", "fa 3f800000", RuleShortFloat, 0},
		{"NaN", "fb 7ff8000000000000", RuleNotFinite, 0},
		{"infinity", "fb 7ff0000000000000", RuleNotFinite, 0},
		{"minus zero", "fb 8000000000000000", RuleNegativeZero, 0},
		{"undefined", "f7", RuleSimple, 0},
		{"simple value 32", "f8 20", RuleSimple, 0},
		{"simple value 0", "e0", RuleSimple, 0},
		{"two values", "01 02", RuleTrailing, 1},
	}
	seen := map[Rule]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := Scan(unhex(t, c.hex), 0, nil)
			var got *ScanError
			if !errors.As(err, &got) || got.Rule != c.rule || got.Offset != c.offset {
				t.Fatalf("Scan(%s) = %v; want byte %d: %s", c.hex, err, c.offset, c.rule)
			}
			if !errors.Is(err, protocol.ErrInvalidBlock) {
				t.Errorf("%v does not wrap invalid_block", err)
			}
		})
		seen[c.rule] = true
	}
	for r := RuleCutShort; r <= RuleTrailing; r++ {
		if !seen[r] {
			t.Errorf("no case for: %s", r)
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
	for _, s := range []string{"", "01", "a1616101", "82f4f6", aLink, "fb3ff8000000000000", "9f01ff", "d82a4100"} {
		f.Add(unhex(f, s))
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
