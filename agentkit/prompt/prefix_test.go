package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/protocol"
)

func TestW02PrefixStability(t *testing.T) {
	var before []byte
	for n := 1; n <= 50; n++ {
		now := Bytes(tools, pingPong(n).build(t))
		if p := Compare(before, now); !p.Whole() {
			t.Fatalf("request %d shares %d of %d bytes with the one before; %s broke it", n, p.Shared, p.Of, p.Part)
		}
		before = now
	}
}

func TestComparePromptsNamesThePartThatBroke(t *testing.T) {
	base := pingPong(3).build(t)
	change := func(i int) []protocol.Message {
		m := append([]protocol.Message(nil), base...)
		m[i].Content = "!" + m[i].Content
		return m
	}
	for part, later := range map[string][]byte{
		"":        append(Bytes(tools, base), "more"...),
		"tools":   Bytes("", base),
		"system":  Bytes(tools, change(0)),
		"history": Bytes(tools, change(1)),
	} {
		if p := Compare(Bytes(tools, base), later); p.Part != part || p.Whole() != (part == "") {
			t.Errorf("want %q, got %+v", part, p)
		}
	}
}

// drawDAG makes a random history of roles that are entered in turn, as the engine would:
// resumes is the nearest ancestor of the same role.
func drawDAG(t *rapid.T) []protocol.Past {
	n := rapid.IntRange(1, 25).Draw(t, "steps")
	roles := []string{"a", "b", "c"}
	var list []protocol.Past
	for i := range n {
		role := rapid.SampledFrom(roles).Draw(t, "role")
		p := protocol.Past{CID: link(fmt.Sprint("step", i)), Role: role, Visit: 1, Status: protocol.StepOK,
			EdgePrompt: rapid.SampledFrom([]string{"", "go", "again <now>"}).Draw(t, "prompt"),
			Text:       rapid.StringN(0, 30, -1).Draw(t, "text"),
			Mentions:   rapid.SampledFrom([][]string{nil, {"output"}, {"inputs.x"}, {"steps.a"}}).Draw(t, "mentions"),
		}
		if rapid.IntRange(0, 5).Draw(t, "fails") == 0 {
			p.Status, p.Error = protocol.StepFailed, &protocol.ErrorInfo{Phase: "run", Message: "no"}
		}
		if i == 0 {
			p.Parents = []protocol.Link{link("START")}
		}
		for range min(i, rapid.IntRange(1, 3).Draw(t, "parents")) {
			p.Parents = append(p.Parents, list[rapid.IntRange(max(0, i-4), i-1).Draw(t, "parent")].CID)
		}
		if prior := nearest(list, p); prior != nil {
			p.Resumes, p.Visit = prior.CID, prior.Visit+1
		}
		list = append(list, p)
	}
	return list
}

func above(list []protocol.Past, p protocol.Past) []protocol.Past {
	in := map[protocol.Link]bool{}
	var mark func(p protocol.Past)
	mark = func(p protocol.Past) {
		for _, l := range p.Parents {
			for _, q := range list {
				if q.CID == l && !in[l] {
					in[l] = true
					mark(q)
				}
			}
		}
	}
	mark(p)
	var out []protocol.Past
	for _, q := range list {
		if in[q.CID] {
			out = append(out, q)
		}
	}
	return out
}

func nearest(list []protocol.Past, p protocol.Past) *protocol.Past {
	up := above(list, p)
	for i := len(up) - 1; i >= 0; i-- {
		if up[i].Role == p.Role && up[i].Status == protocol.StepOK {
			return &up[i]
		}
	}
	return nil
}

func TestW02PrefixOfRandomDAGs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	rapid.Check(t, func(t *rapid.T) {
		list := drawDAG(t)
		byCID := map[protocol.Link]protocol.Past{}
		for _, p := range list {
			byCID[p.CID] = p
		}
		prompt := func(p protocol.Past, past []protocol.Past) []byte {
			m, err := BuildMessages(protocol.History{Format: 1, Role: p.Role, System: "s", Inputs: protocol.JSON(`{"x":"1"}`), Visit: p, Past: past})
			if err != nil {
				t.Fatal(err)
			}
			return Bytes(tools, m)
		}
		p := list[len(list)-1]
		p.CID = protocol.Link{} // not known before it ends
		now := prompt(p, above(list, p))

		shuffled := rapid.Permutation(list).Draw(t, "order with later nodes")
		runtime.GOMAXPROCS(1 + len(list)%2)
		if other := prompt(p, shuffled); !bytes.Equal(now, other) {
			t.Fatalf("order, later nodes or GOMAXPROCS matter:\n%s\n%s", now, other)
		}
		for p.Resumes.Defined() {
			p = byCID[p.Resumes]
			if c := Compare(prompt(p, above(list, p)), now); !c.Whole() {
				t.Fatalf("%s#%d is no prefix: %d of %d", p.Role, p.Visit, c.Shared, c.Of)
			}
		}
	})
}

func TestPromptBytesAreJSONLines(t *testing.T) {
	b := Bytes("", []protocol.Message{{Role: "user", Content: "a<b>&\n\u2028"}})
	want := "[]\n" + `{"role":"user","content":"a<b>&\n\u2028"}` + "\n"
	if string(b) != want {
		t.Errorf("got %s", b)
	}
	for line := range bytes.Lines(b) {
		if !json.Valid(line) {
			t.Errorf("no JSON: %s", line)
		}
	}
	if got := Digest("", nil).String(); !strings.HasPrefix(got, "bafkrei") {
		t.Errorf("a digest is a raw CID, not %s", got)
	}
}

// BenchmarkPrompt builds a prompt of 200 visits and encodes it as it is hashed; 5 ms are too long.
func BenchmarkPrompt(b *testing.B) {
	h := protocol.History(pingPong(200))
	b.ReportAllocs()
	for b.Loop() {
		messages, err := BuildMessages(h)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(Bytes(tools, messages))))
	}
}

func BenchmarkMessages(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		h := protocol.History(pingPong(n))
		b.Run(fmt.Sprintf("visits=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := BuildMessages(h); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/visit")
		})
	}
}
