package prompt

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/prompt/prompttest"
	"wf/protocol"
)

var update = flag.Bool("update", false, "write the golden files of the current format")

const tools = prompttest.Tools

var link, step = prompttest.Link, prompttest.Step

// pingPong is n visits of a coder, each after a test that failed.
func pingPong(n int) historyOf { return historyOf(prompttest.PingPong(n)) }

func (h historyOf) build(t testing.TB) []protocol.Message {
	t.Helper()
	m, err := BuildMessages(protocol.History(h))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type historyOf protocol.History

// reentry is START → planner → developer → reviewer (rejects) → developer.
func reentry() historyOf {
	planner := step("planner#1", "The plan.", "START")
	planner.EdgePrompt = "Plan it."
	dev1 := step("developer#1", "---\nstatus: done\n---\nFirst try.", "planner#1")
	dev1.EdgePrompt = "Build it."
	dev1.Data = protocol.JSON(`{"status":"done"}`)
	review := step("reviewer#1", "Tests are missing.", "developer#1")
	review.Data = protocol.JSON(`{"verdict":"reject"}`)
	dev2 := step("developer#2", "", "reviewer#1")
	dev2.EdgePrompt, dev2.Resumes = "The reviewer is not happy.", link("developer#1")
	return historyOf{
		Format: 1, Role: "developer", System: "You build.", Schema: `{"type":"object"}`,
		Inputs: protocol.JSON(`{"n":3,"package":"./calc"}`), Visit: dev2, Past: []protocol.Past{review, planner, dev1},
	}
}

func TestW01ReEntryLayout(t *testing.T) {
	second := reentry().build(t)
	var layout []string
	for _, m := range second {
		layout = append(layout, m.Role)
	}
	if d := cmp.Diff([]string{"system", "user", "assistant", "user"}, layout); d != "" {
		t.Fatal(d)
	}

	h := reentry()
	h.Visit = h.Past[2]
	h.Past = h.Past[1:2]
	first := h.build(t)
	if d := cmp.Diff(first, second[:2]); d != "" {
		t.Errorf("visit 2 does not begin with visit 1: %s", d)
	}
	if second[2].Content != "---\nstatus: done\n---\nFirst try." {
		t.Errorf("A1 is %q", second[2].Content)
	}
	const u2 = "The reviewer is not happy.\n\n## What happened since\n\n### reviewer#1 · ok\nverdict: reject\n\nTests are missing."
	if second[3].Content != u2 {
		t.Errorf("U2 is %q", second[3].Content)
	}
	const u1 = "Build it.\n\n## Inputs\n\nn: 3\npackage: ./calc\n\n## What happened so far\n\n### planner#1 · ok\nThe plan."
	if first[1].Content != u1 {
		t.Errorf("U1 is %q", first[1].Content)
	}
}

func TestW06OldRecordsHaveNoEdgePrompt(t *testing.T) {
	h := historyOf{Role: "coder", Visit: step("coder#2", "", "coder#1")}
	h.Visit.Resumes = link("coder#1")
	h.Past = []protocol.Past{step("coder#1", "Hello.", "START")}
	want := []protocol.Message{{Role: "user", Content: "(continue)"}, {Role: "assistant", Content: "Hello."}, {Role: "user", Content: "(continue)"}}
	if d := cmp.Diff(want, h.build(t)); d != "" {
		t.Error(d)
	}
}

func TestW08AnInputIsToldExactlyOnce(t *testing.T) {
	for name, c := range map[string]struct {
		mentions []string
		prompt   string
		want     string
	}{
		"not mentioned":        {nil, "Go.", "Go.\n\n## Inputs\n\nn: 3\npackage: ./calc"},
		"mentioned by name":    {[]string{"inputs.package"}, "Fix ./calc.", "Fix ./calc.\n\n## Inputs\n\nn: 3"},
		"a part is mentioned":  {[]string{"inputs.n", "inputs.package.path"}, "3 ./calc", "3 ./calc"},
		"all mentioned":        {[]string{"inputs"}, "All: 3 ./calc", "All: 3 ./calc"},
		"a longer name is not": {[]string{"inputs.packages"}, "x", "x\n\n## Inputs\n\nn: 3\npackage: ./calc"},
	} {
		t.Run(name, func(t *testing.T) {
			h := reentry()
			h.Visit, h.Past = step("coder#1", "", "START"), nil
			h.Visit.EdgePrompt, h.Visit.Mentions = c.prompt, c.mentions
			if got := h.build(t)[1].Content; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestW09NothingOfTheMachineIsInTheFirstMessage(t *testing.T) {
	before := reentry().build(t)
	t.Chdir(t.TempDir())
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("LC_ALL", "tr_TR.UTF-8")
	if d := cmp.Diff(before, reentry().build(t)); d != "" {
		t.Error(d)
	}
}

func TestW10ANewerFormatLeavesOlderBytesAlone(t *testing.T) {
	h := protocol.History(reentry())
	next := protocol.Format + 1
	newer := map[int]format{next: {
		system: func(*protocol.History) string { return "quite another system" },
		user:   func(*userParts) string { return "quite another user" },
		silent: "…",
	}}
	for v, f := range formats {
		newer[v] = f
	}
	want, err := build(formats, h)
	if err != nil {
		t.Fatal(err)
	}
	got, err := build(newer, h)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	h.Format = next
	if got, err := build(newer, h); err != nil || got[0].Content != "quite another system" {
		t.Errorf("format %d gives %v, %v", next, got, err)
	}
	if _, err := BuildMessages(h); protocol.CodeOf(err) != protocol.ErrSemantics.Code {
		t.Errorf("an unknown format gives %v", err)
	}
}

// golden is a conversation that shows every rule of the format.
func golden() historyOf {
	h := reentry()
	h.Schema = `{"properties":{"status":{"enum":["done","stuck"]}},"required":["status"],"type":"object"}`
	failed := step("tester#1", "", "reviewer#1")
	failed.Status, failed.Error = protocol.StepFailed, &protocol.ErrorInfo{Code: "exit_code", Phase: "run", Message: "exit status 2"}
	a, b := step("lint#1[0]", "a is clean", "tester#1"), step("lint#1[1]", strings.Repeat("long ", 300), "tester#1")
	gate := step("gate#1", "try\nharder", "lint#1[0]", "lint#1[1]")
	gate.Data = protocol.JSON(`{"choice":"retry","text":"try\nharder"}`)
	set := step("facts#1", "", "gate#1")
	set.Data = protocol.JSON(`{"list":[1,{"a":"<b>"}],"notes":"one\ntwo"}`)
	h.Visit = step("developer#2", "", "gate#1", "facts#1")
	h.Visit.Resumes, h.Visit.EdgePrompt, h.Visit.Mentions = link("developer#1"), "Retry: try harder", []string{"outputs.gate.text"}
	h.Visit.Inject = "Date: 1 January 2025"
	h.Past = append(h.Past, failed, a, b, gate, set)
	return h
}

func TestFormatsMatchTheirGoldenFiles(t *testing.T) {
	if _, ok := formats[protocol.Format]; !ok || len(formats) != protocol.Format {
		t.Errorf("formats 1 to %d are not all there", protocol.Format)
	}
	for version := range formats {
		h := golden()
		h.Format = version
		pinned(t, version, "", Bytes(tools, h.build(t)))
	}
}

// pinned holds messages against those of testdata/messages. A format without a file of its own
// renders them as the one before does.
func pinned(t *testing.T, version int, kind string, got []byte) {
	t.Helper()
	name := func(version int) string {
		return filepath.Join("..", "..", "testdata", "messages", fmt.Sprintf("%d%s.jsonl", version, kind))
	}
	of := version
	for of > 1 {
		if _, err := os.Stat(name(of)); err == nil {
			break
		}
		of--
	}
	want, err := os.ReadFile(name(of))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case bytes.Equal(got, want):
	case *update && version == protocol.Format:
		if err := os.WriteFile(name(version), got, 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("format %d no longer renders %s: a format is never changed, add another\n%s", version, name(of), cmp.Diff(string(want), string(got)))
	}
}

func TestSummariesAreCut(t *testing.T) {
	h := historyOf{Role: "coder", Visit: step("coder#1", "", "last#1")}
	parent := "START"
	for i := 1; i <= 10; i++ {
		name := fmt.Sprintf("s%d#1", i)
		h.Past = append(h.Past, step(name, strings.Repeat("ä", 1300), parent))
		parent = name
	}
	h.Past = append(h.Past, step("last#1", strings.Repeat("ö", 25_000), parent))
	u := h.build(t)[0].Content

	if n := strings.Count(u, "ö"); n != 24_000 {
		t.Errorf("the direct parent has %d runes", n)
	}
	if want := fmt.Sprintf("…[1000 more, %s]", link("last#1")); !strings.HasSuffix(u, want) {
		t.Errorf("the direct parent does not end in %s", want)
	}
	// Each entry is 1,200 runes and its marker; the newest that fit in 8,000 stay.
	if n := strings.Count(u, "ä"); n != 6*1200 {
		t.Errorf("the others have %d runes together", n)
	}
	if !strings.HasPrefix(u, fmt.Sprintf("## What happened so far\n\n…[4 more, %s]\n\n### s5#1 · ok\n", link("s4#1"))) {
		t.Errorf("the oldest were not dropped first: %.200s", u)
	}
}

func TestADirectParentThatIsMentionedIsAHeader(t *testing.T) {
	for _, mention := range []string{"output", "output.text", "outputs.reviewer", "outputs", "steps.reviewer.text"} {
		h := reentry()
		h.Visit.Mentions = []string{mention}
		if got := h.build(t)[3].Content; !strings.HasSuffix(got, "since\n\n### reviewer#1 · ok") {
			t.Errorf("%s: %q", mention, got)
		}
	}
}

func TestFormat2LeavesHeadersOutThatHaveNothingBelow(t *testing.T) {
	h := reentry()
	h.Format, h.Visit.Mentions = 2, []string{"output.text"}
	if got := h.build(t)[3].Content; got != "The reviewer is not happy." {
		t.Errorf("U2 is %q", got)
	}
	quiet, failed, said := step("quiet#1", "", "START"), step("failed#1", "", "quiet#1"), step("said#1", "Look.", "failed#1")
	failed.Status = protocol.StepFailed
	h.Past, h.Visit = []protocol.Past{quiet, failed, said}, step("developer#1", "", "said#1")
	h.Inputs = nil
	if got, want := h.build(t)[1].Content, "## What happened so far\n\n### failed#1 · failed\n\n### said#1 · ok\nLook."; got != want {
		t.Errorf("U1 is %q, want %q", got, want)
	}
	h.Past, h.Visit = h.Past[:1], step("developer#1", "", "quiet#1")
	if got := h.build(t)[1].Content; got != "(continue)" {
		t.Errorf("a first message with nothing to tell is %q", got)
	}
}

func TestFrontmatterIsToldOnceAndOtherTextWhole(t *testing.T) {
	for name, c := range map[string]struct{ data, text, want string }{
		"an agent":                    {`{"status":"done"}`, "---\nstatus: done\n---\n\nBody.", "status: done\n\nBody."},
		"an agent without a body":     {`{"status":"done"}`, "---\nstatus: done\n---", "status: done"},
		"a command that prints YAML":  {`{"exit_code":0}`, "---\na: 1\n---\nrest", "exit_code: 0\n\n---\na: 1\n---\nrest"},
		"a command with text as data": {`{"exit_code":1,"text":"FAIL"}`, "FAIL", "exit_code: 1\n\nFAIL"},
		"values alone":                {`{"a":"x","b":[1]}`, "", "a: x\nb: [1]"},
		"the list of a fan-out":       {`[{"a":1}]`, "", `[{"a":1}]`},
	} {
		p := step("x#1", c.text)
		p.Data = protocol.JSON(c.data)
		if got := bodyV1(&p); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCompactionIsRenderedBeforeTheVisitsItKeeps(t *testing.T) {
	h := pingPong(5)
	whole := h.build(t)
	h.Past = append(h.Past, protocol.Past{
		CID: link("compaction"), Role: "coder",
		Compaction: &protocol.PastCompaction{Prior: link("coder#4"), Covers: link("coder#2"), Summary: "Two rounds failed."},
	})
	h.Visit.Resumes = link("compaction")
	got := h.build(t)

	want := append([]protocol.Message{whole[0]}, whole[5:]...)
	want[1].Content = "Two rounds failed.\n\n" + want[1].Content
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	// A second compaction that covers less than all goes through the first.
	h.Past = append(h.Past, protocol.Past{CID: link("second"), Role: "coder",
		Compaction: &protocol.PastCompaction{Prior: link("compaction"), Covers: link("coder#3"), Summary: "Three rounds failed."}})
	h.Visit.Resumes = link("second")
	got = h.build(t)
	want = append([]protocol.Message{whole[0]}, whole[7:]...)
	want[1].Content = "Three rounds failed.\n\n" + want[1].Content
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMissingRecordsAreErrors(t *testing.T) {
	h := protocol.History(reentry())
	h.Past = h.Past[:2]
	if _, err := BuildMessages(h); protocol.CodeOf(err) != protocol.ErrNotFound.Code || !strings.Contains(err.Error(), "developer#2") {
		t.Errorf("got %v", err)
	}
	h = protocol.History(reentry())
	h.Past[2].Resumes = h.Past[2].CID
	if _, err := BuildMessages(h); protocol.CodeOf(err) != protocol.ErrCorrupt.Code {
		t.Errorf("got %v", err)
	}
}
