package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/memory"
	"wf/agentkit/tool"
	"wf/protocol"
)

// desk gives the tools of a visit over a store; changed counts the changes it was told of.
func desk(m *memory.Store, changed *int) memory.Desk {
	return memory.Desk{
		Open:   func(context.Context) (*memory.Store, error) { return m, nil },
		Origin: memory.Origin{By: "coder", Run: "r1", Step: "coder#1", Key: "key"},
		Changed: func(_ context.Context, scope, head string) error {
			*changed++
			if scope != "test" || head == "" {
				return errors.New("told of nothing")
			}
			return nil
		},
	}
}

func call(t *testing.T, d memory.Desk, id, name, args string) tool.Result {
	t.Helper()
	for _, x := range d.Tools() {
		if x.Name != name {
			continue
		}
		at := tool.Workspace{Clean: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[secret:PW]") }}
		r, err := x.Run(memory.WithCall(t.Context(), id), at, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatalf("no tool %s", name)
	return tool.Result{}
}

func TestTheFiveTools(t *testing.T) {
	s, changed := newStage(t), 0
	d := desk(s.open(t, "axes"), &changed)
	for i, c := range []struct{ name, args, want string }{
		{"list_memories", `{}`, "nothing is remembered yet"},
		{"recall", `{"query":"a=1"}`, "nothing is remembered that fits"},
		{"remember", `{"content":"a=1 the password is hunter2","tags":["x","say \"y\", z"]}`, "remembered as 1"},
		{"remember", `{"content":"b=1","important":true}`, "remembered as 2, pinned"},
		{"remember", `{"content":"c=1","tags":["x"]}`, "remembered as 3"},
		{"recall", `{"query":"a=1","limit":1}`, `[id:1] [tags:x,"say \"y\", z"] [distance:0.000]` + "\na=1 the password is [secret:PW]"},
		{"recall", `{"query":"a=1","tags":["x","nobody"],"tag_mode":"and"}`, "nothing is remembered that fits"},
		{"recall", `{"tags":["x"],"limit":1}`, "[id:3] [tags:x]\nc=1"},
		{"context_for", `{"tags":["X"]}`, "[id:3] [tags:x]\nc=1\n\n" + `[id:1] [tags:x,"say \"y\", z"]` + "\na=1 the password is [secret:PW]"},
		{"edit_memory", `{"id":3,"tags":["z"],"pinned":true}`, "changed: [id:3] [tags:z] [pinned]"},
		{"edit_memory", `{"id":2,"pinned":false}`, "changed: [id:2] [tags:]"},
		{"edit_memory", `{"special":"Be brief."}`, "the anchor memory is changed; it is read at the start of the next conversation"},
		{"list_memories", ``, "error: the arguments are not a JSON object: unexpected end of JSON input"},
		{"list_memories", `{}`, "Anchor:\n[id:7] [tags:] [pinned] Be brief.\nPinned:\n[id:3] [tags:z] [pinned] c=1\nRecent:\n[id:2] [tags:] b=1\n" + `[id:1] [tags:x,"say \"y\", z"] a=1 the password is [secret:PW]`},
	} {
		if d := cmp.Diff(c.want, call(t, d, string(rune('a'+i)), c.name, c.args).Content); d != "" {
			t.Errorf("%d %s %s: %s", i, c.name, c.args, d)
		}
	}
	if changed != 6 {
		t.Errorf("told of %d changes", changed)
	}
}

func TestMalformedArgumentsGetAResult(t *testing.T) {
	s, changed := newStage(t), 0
	d := desk(s.open(t, ""), &changed)
	for _, c := range [][3]string{
		{"remember", `{}`, `"content" is missing`},
		{"remember", `{"content":""}`, "empty"},
		{"remember", `{"content":7}`, "do not fit: content holds a number, want a string"},
		{"remember", `{"content":"x","tags":"a,b"}`, "do not fit: tags holds a string, want an array"},
		{"remember", `{"content":"x","pinned":true}`, `unknown field "pinned"`},
		{"recall", `{}`, "needs a text or tags"},
		{"recall", `{"query":"x","tag_mode":"xor"}`, "want or, and"},
		{"recall", `{"query":"x","limit":-1}`, "want 1 to 100"},
		{"context_for", `{}`, `"tags" is missing`},
		{"context_for", `{"tags":[]}`, "needs a text or tags"},
		{"edit_memory", `{}`, "name a memory by its id"},
		{"edit_memory", `{"id":1}`, "say what to change"},
		{"edit_memory", `{"id":99,"pinned":true}`, "no memory 99"},
		{"edit_memory", `{"id":1,"special":"x"}`, "one at a time"},
		{"edit_memory", `{"special":"x","pinned":false}`, "always pinned"},
		{"edit_memory", `{"id":"one","pinned":true}`, "do not fit: id holds a string, want an integer"},
		{"list_memories", `{"all":true}`, "unknown field"},
	} {
		r := call(t, d, "id", c[0], c[1])
		if !r.IsError || !strings.HasPrefix(r.Content, "error: ") || !strings.Contains(r.Content, c[2]) {
			t.Errorf("%s %s: %+v", c[0], c[1], r)
		}
	}
	if changed != 0 || len(s.ledger.Entries()) != 0 {
		t.Errorf("%d changes, %v", changed, s.ledger.Types())
	}
}

func TestACallThatIsRepeatedActsOnce(t *testing.T) {
	s, changed := newStage(t), 0
	d := desk(s.open(t, ""), &changed)
	for range 2 {
		if got := call(t, d, "call_1", "remember", `{"content":"x"}`); got.Content != "remembered as 1" {
			t.Error(got)
		}
	}
	call(t, d, "call_2", "remember", `{"content":"x"}`)
	if d := cmp.Diff([]string{"remembered", "remembered"}, s.ledger.Types()); d != "" {
		t.Error(d)
	}
	if changed != 3 {
		t.Errorf("told of %d changes: a repeated call may have died before it told", changed)
	}
}

func TestTheParametersOfTheToolsAreThoseThatModelsKnow(t *testing.T) {
	d := memory.Desk{}
	got := map[string][]string{}
	for _, x := range d.Tools() {
		var schema struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		if err := json.Unmarshal(x.Parameters, &schema); err != nil {
			t.Fatalf("%s: %v", x.Name, err)
		}
		if x.Description == "" || x.Run == nil {
			t.Errorf("%s says nothing or does nothing", x.Name)
		}
		for _, p := range []string{"content", "important", "query", "id", "pinned", "special", "tags", "tag_mode", "limit"} {
			if _, ok := schema.Properties[p]; ok {
				got[x.Name] = append(got[x.Name], p)
			}
		}
	}
	want := map[string][]string{
		"remember":    {"content", "important", "tags"},
		"recall":      {"query", "tags", "tag_mode", "limit"},
		"context_for": {"tags", "tag_mode", "limit"},
		"edit_memory": {"id", "pinned", "special", "tags"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWhatEntersAPromptIsBounded(t *testing.T) {
	s := newStage(t)
	m := s.open(t, "")
	for range 20 {
		if _, err := m.Remember(t.Context(), memory.Note{Content: strings.Repeat("é ", 1_500), Pinned: true}); err != nil {
			t.Fatal(err)
		}
	}
	standing, err := m.Standing(t.Context())
	if n := len([]rune(standing)); err != nil || n > 17_000 || !strings.Contains(standing, "older pinned memories") || !strings.Contains(standing, "[id:20]") {
		t.Errorf("%d runes, %v", n, err)
	}
	remember(t, m, strings.Repeat("long ", 200_000), "big")
	hits, err := m.Recall(t.Context(), memory.Query{Tags: []string{"big"}, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	recalled, err := m.Recalled(t.Context(), hits)
	if err != nil || len(recalled) > 2_200 || !strings.HasPrefix(recalled, "[recalled memory] [id:21] [tags:big]\nlong long") || !strings.HasSuffix(recalled, " more]") {
		t.Errorf("%d bytes, %v", len(recalled), err)
	}
	var none protocol.Seq
	if _, there, err := m.Get(t.Context(), none); there || err != nil {
		t.Error(there, err)
	}
}
