package dagcbor_test

import (
	"encoding/hex"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wf/protocol/dagcbor"
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
	file, err := os.ReadFile("../../testdata/vectors/dag-cbor.tsv")
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
			err := dagcbor.Check(v.data)
			var got *dagcbor.Fault
			switch {
			case v.fault == "none" && err != nil:
				t.Errorf("Check(%x) = %v", v.data, err)
			case v.fault != "none" && (!errors.As(err, &got) || string(got.Rule) != v.fault || got.Offset != v.at):
				t.Errorf("Check(%x) = %v; want byte %d: %s", v.data, err, v.at, v.fault)
			}
		})
	}
	for _, r := range rules(t) {
		if !seen[r] {
			t.Errorf("no vector for: %s", r)
		}
	}
}

// rules are the texts of the first group of constants of rule.go, those of strict DAG-CBOR.
func rules(t *testing.T) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "rule.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || all != nil {
			continue
		}
		for _, s := range group.Specs {
			text, err := strconv.Unquote(s.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
	}
	if !slices.Contains(all, string(dagcbor.CutShort)) || !slices.Contains(all, string(dagcbor.Trailing)) {
		t.Fatalf("the rules were not read: %q", all)
	}
	return all
}

func TestScanYieldsEveryLinkInOrder(t *testing.T) {
	v0 := "d82a582300" + "1220" + strings.Repeat("11", 32)
	sha1 := "d82a581900" + "01701114" + strings.Repeat("22", 20)
	var got []string
	s := dagcbor.Scan{Walk: dagcbor.Walk{B: unhex(t, "83"+aLink+v0+sha1)}}
	s.OnLink = func(c []byte, _ int) { got = append(got, string(dagcbor.AppendCID(nil, c))) }
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0] != "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku" || !strings.HasPrefix(got[1], "Qm") {
		t.Errorf("links = %v", got)
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
