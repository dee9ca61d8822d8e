package lang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// How long an agent waits for its provider may be nothing, which is something else than nothing said.
func TestPatienceIsATimeOrNone(t *testing.T) {
	for text, want := range map[string]int64{"": -1, "0": 0, `"0"`: 0, "0s": 0, "90s": 90_000_000, "1h30m": 5_400_000_000} {
		p, ds := Load([]byte("wf: 1\nname: t\nroles:\n  a: {prompt: Go., model: a/b"+strings.Repeat(", patience: "+text, min(1, len(text)))+"}\n"), Options{})
		if p == nil {
			t.Fatalf("%q: %v", text, ds)
		}
		got := int64(-1)
		if us := p.Workflow.Roles[0].Patience; us != nil {
			got = *us
		}
		if got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"soon", "5", "-1s", "00", "1d", "[1s]", "true", "null"} {
		p, ds := Load([]byte("wf: 1\nname: t\nroles:\n  a: {prompt: Go., model: a/b, patience: "+text+"}\n"), Options{})
		if p != nil || !slices.ContainsFunc(ds, func(d Diagnostic) bool {
			return d.Code == "WF002" && strings.Contains(d.Message, "patience ") || d.Code == "WF003"
		}) {
			t.Errorf("%q: %v", text, ds)
		}
	}
}

// Where a scalar may be one of two things the type decides which: so a value of the one type is never to be judged by two.
func TestAlternativesAreToldApartByTheirType(t *testing.T) {
	types := func(s *shape) []string {
		switch s.kind {
		case aString, aDuration:
			return []string{"text"}
		case anInt:
			return []string{"number"}
		case aBool:
			return []string{"bool"}
		case aDecimal, aMoney:
			return []string{"text", "number"}
		case aText, anExpr, anyJSON:
			return []string{"text", "number", "bool"}
		}
		return []string{fmt.Sprint("no scalar ", s.nodeKind())}
	}
	seen := map[*shape]bool{}
	var walk func(path string, s *shape)
	walk = func(path string, s *shape) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		of := map[string]int{}
		for i, a := range s.alts {
			for _, typ := range types(a) {
				if before, twice := of[typ]; twice {
					t.Errorf("%s: a %s is %s, and is %s", path, typ, s.alts[before].want(), a.want())
				}
				of[typ] = i
			}
			walk(path, a)
		}
		walk(path+".*", s.elem)
		for i := range s.keys {
			walk(path+"."+s.keys[i].name, s.keys[i].shape)
		}
	}
	walk("", grammar().workflow)
}
