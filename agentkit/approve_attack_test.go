package agentkit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/agentkit/tool"
	"wf/protocol"
)

// asking is a role whose only reply before its answer calls one tool with those arguments, for
// which a person is asked.
func asking(t *testing.T, name string, calls ...map[string]any) *stage {
	t.Helper()
	var list []any
	for _, args := range calls {
		list = append(list, map[string]any{"tool": name, "args": args})
	}
	replies := []any{map[string]any{"tools": list}, map[string]any{"text": "---\nstatus: done\n---\n"}}
	b, err := json.Marshal(map[string]any{"coder#1": replies, "other#1": replies})
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, string(b))
	s.agent.Tools = []tool.Tool{appendTool}
	s.turn.Role.Tools = []string{name}
	s.turn.Role.Approvals = []protocol.NamedTemplate{{Name: name, Value: "ask"}}
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil {
		t.Fatal(err)
	}
	s.turn.History.Tools = p.Tools
	return s
}

// waits performs the visit until it asks, and gives what it asked last.
func (s *stage) waits(t *testing.T, j *journal) protocol.WaitingFor {
	t.Helper()
	if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) {
		t.Fatalf("the visit does not ask: %v", err)
	}
	all := find[protocol.WaitingFor](j)
	return all[len(all)-1]
}

// answered gives an answer to a question.
func (s *stage) answered(w protocol.WaitingFor, choice, text string) {
	s.turn.Answers = append(s.turn.Answers, protocol.AnswerTo{Waiting: w,
		Answer: protocol.Answered{By: "kim", Choice: choice, Text: protocol.NewText(text), Shown: w.Shown}})
}

func (s *stage) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.turn.Workspace, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.turn.Workspace, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func TestAnApprovalShowsTheEndOfALongCommand(t *testing.T) {
	for name, command := range map[string]string{
		"behind words":      "echo " + strings.Repeat("building ", 1_990) + "; id > X",
		"behind blanks":     "echo building" + strings.Repeat(" ", 1_990) + "; id > X",
		"behind empty rows": "echo building" + strings.Repeat("\n", 1_990) + "id > X",
	} {
		s, j := asking(t, "shell", map[string]any{"command": command}), &journal{}
		if q := s.waits(t, j).Question.S; !strings.HasSuffix(q, command) || !strings.Contains(q, fmt.Sprintf("(%d bytes, ", len(command))) {
			t.Errorf("%s: the question ends in %q and begins with %q", name, q[max(0, len(q)-40):], q[:min(len(q), 100)])
		}
	}
}

func TestACallThatIsTooLongToReadIsRefused(t *testing.T) {
	s, j := asking(t, "shell", map[string]any{"command": "echo " + strings.Repeat("building ", ShownMax/9) + "; id > X"}), &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	r := find[protocol.ToolResult](j)[0]
	if !r.IsError || !strings.Contains(r.Content.S, "write a script and run that") || len(find[protocol.WaitingFor](j)) > 0 {
		t.Errorf("the model reads %q", r.Content.S)
	}
	if s.read(t, "X") != "" {
		t.Error("the command ran")
	}
}

func TestAnApprovalShowsWhatCannotBeSeen(t *testing.T) {
	for hidden, seen := range map[string]string{
		"\u202e": `\u{202e}`, "\u2066": `\u{2066}`, "\u200b": `\u{200b}`, "\u200d": `\u{200d}`, "\ufe0f": `\u{fe0f}`, "\u00ad": `\u{ad}`,
		"\x1b": `\u{1b}`, "\r": `\u{d}`, "\b": `\u{8}`, "\u00a0": `\u{a0}`, "\u2028": `\u{2028}`, "\U000e0041": `\u{e0041}`, "\u3164": `\u{3164}`,
		"\u2800": `\u{2800}`, "\U0001d159": `\u{1d159}`, "\U00016fe4": `\u{16fe4}`, "\U00013441": `\u{13441}`,
	} {
		s, j := asking(t, "shell", map[string]any{"command": "echo a" + hidden + "b"}), &journal{}
		if q := s.waits(t, j).Question.S; !strings.HasSuffix(q, "echo a"+seen+"b") {
			t.Errorf("%q is shown as %q", hidden, q)
		}
	}
}

func TestAChangeOfAFileIsShownAsADifference(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(strings.Repeat("same\n", 40)), "\n")
	before := slices.Clone(lines)
	before[20] = "old line"
	after := slices.Clone(lines)
	after[20] = "new line"
	for name, args := range map[string]map[string]any{
		"write_file": {"path": "a.txt", "content": strings.Join(after, "\n") + "\n"},
		"edit_file":  {"path": "a.txt", "old": "old line", "new": "new line"},
	} {
		s, j := asking(t, name, args), &journal{}
		s.write(t, "a.txt", strings.Join(before, "\n")+"\n")
		q := s.waits(t, j).Question.S
		if !strings.Contains(q, "\n-old line\n+new line\n") || !strings.Contains(q, "+++ a.txt") || strings.Count(q, "same") != 6 {
			t.Errorf("%s asks %q", name, q)
		}
	}
	s, j := asking(t, "write_file", map[string]any{"path": "deep/down/new.txt", "content": "x\n"}), &journal{}
	if q := s.waits(t, j).Question.S; !strings.Contains(q, "--- /dev/null\n+++ deep/down/new.txt\n") {
		t.Errorf("a new file asks %q", q)
	}
	if made, err := os.ReadDir(s.turn.Workspace); err != nil || len(made) > 0 {
		t.Errorf("to ask made %v, %v", made, err)
	}
	s, j = asking(t, "write_file", map[string]any{"path": "new\n+++ other.txt", "content": "x\n"}), &journal{}
	if q := s.waits(t, j).Question.S; !strings.Contains(q, "--- /dev/null\n+++ \"new\\n+++ other.txt\"\n") || !strings.HasSuffix(q, "\n+x\n") {
		t.Errorf("a new file asks %q", q)
	}
}

func TestNoAnswerToACallIsTheDefault(t *testing.T) {
	s, j := asking(t, "append", map[string]any{"line": "one"}), &journal{}
	var values []string
	for _, c := range s.waits(t, j).Choices {
		if values = append(values, c.Value); c.Primary {
			t.Errorf("%s is the default", c.Value)
		}
	}
	if want := []string{"allow", "allow_run", "deny"}; !slices.Equal(values, want) {
		t.Errorf("the choices are %q, want %q", values, want)
	}
	s, j = asking(t, "append", map[string]any{"line": "one"}), &journal{}
	s.turn.Role.Sandbox = protocol.SandboxOff
	if c := s.waits(t, j).Choices; len(c) != 2 || c[0].Value != "allow" || c[1].Value != "deny" {
		t.Errorf("without a sandbox the choices are %v", c)
	}
}

func TestACallThatDiffersFromWhatWasAllowedIsAskedForAgain(t *testing.T) {
	s, j := asking(t, "write_file", map[string]any{"path": "a.txt", "content": "new\n"}), &journal{}
	s.write(t, "a.txt", "nothing of worth\n")
	first := s.waits(t, j)
	s.write(t, "a.txt", "the only copy\n")
	s.answered(first, "allow", "")
	second := s.waits(t, j)
	if second.Shown == first.Shown || !strings.Contains(second.Question.S, "-the only copy") || s.read(t, "a.txt") != "the only copy\n" {
		t.Fatalf("asked again: %+v", second)
	}
	s.answered(second, "allow", "")
	j.stop = len(j.commits) + 1 // the word is durable, then the process dies
	if _, err := s.perform(t, j); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	if a := find[protocol.Approval](j); len(a) != 1 || a[0].Shown != second.Shown {
		t.Errorf("the journal holds %+v", a)
	}
}

// A suspended run comes back with the word given and the call not started.
func TestAWordIsNotForWhatTheCallBecameMeanwhile(t *testing.T) {
	s, j := asking(t, "write_file", map[string]any{"path": "a.txt", "content": "new\n"}), &journal{}
	s.answered(s.waits(t, j), "allow", "")
	j.stop = len(j.commits) + 1
	if _, err := s.perform(t, j); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	j.stop = 0
	j.commits = slices.DeleteFunc(j.commits, func(c []protocol.Data) bool { return c[0].EventType() == protocol.EvToolResult })
	j.commits = append(j.commits, []protocol.Data{ofRun{protocol.SuspendedBy{Reason: protocol.ByInterrupt}}}, []protocol.Data{ofRun{protocol.ResumedBy{}}})
	s.write(t, "a.txt", "the only copy\n")
	if w := s.waits(t, j); !strings.Contains(w.Question.S, "-the only copy") || s.read(t, "a.txt") != "the only copy\n" {
		t.Errorf("asked %+v", w)
	}
}

func TestAWordForTheRunHoldsForExactlyThatCall(t *testing.T) {
	same := map[string]any{"line": "one"}
	s, j := asking(t, "append", same, same, map[string]any{"line": "two"}), &journal{}
	first := s.waits(t, j)
	s.answered(first, "allow_run", "")
	if w := s.waits(t, j); !strings.Contains(w.Question.S, "two") || s.log(t) != "one\none\n" {
		t.Fatalf("asked %q after %q", w.Question.S, s.log(t))
	}
	decided := find[protocol.Approval](j)
	if len(decided) != 2 || decided[1].For != protocol.ForRun || decided[1].By != "kim" {
		t.Errorf("the journal holds %+v", decided)
	}

	allowed := map[string]string{first.Shown: "kim"}
	for name, differs := range map[string]func(*stage){
		"":            func(*stage) {},
		"role":        func(s *stage) { s.turn.Role.Name = "other" },
		"directory":   func(s *stage) { s.turn.Workspace = t.TempDir() },
		"network":     func(s *stage) { s.turn.Role.Network = protocol.NetworkAllow },
		"sandbox":     func(s *stage) { s.turn.Role.Sandbox = protocol.SandboxOff },
		"environment": func(s *stage) { s.turn.Env = map[string]string{"PATH": "/tmp"} },
		"tool": func(s *stage) {
			s.turn.History.Tools = strings.Replace(s.turn.History.Tools, "description\":\"", "description\":\"Also ", 1)
		},
	} {
		other, j := asking(t, "append", same), &journal{}
		other.turn.Workspace, other.turn.Allowed = s.turn.Workspace, allowed
		differs(other)
		_, err := other.perform(t, j)
		if name == "" && err != nil {
			t.Errorf("the same call of another visit: %v", err)
		}
		if name != "" && !errors.Is(err, protocol.ErrWaiting) {
			t.Errorf("a call that differs by its %s ran unasked (%v)", name, err)
		}
	}
}

func TestACallWithAHiddenPartNeverRunsUnasked(t *testing.T) {
	for name, keeps := range map[string]*Withheld{"kept": {}, "lost": nil} {
		s, j := asking(t, "append", map[string]any{"line": token}), &journal{}
		s.turn.Role.Approvals, s.agent.Withheld = []protocol.NamedTemplate{{Name: "append", Value: "auto"}}, keeps
		s.turn.Allowed = map[string]string{}
		w := s.waits(t, j)
		call := find[protocol.ToolCall](j)[0]
		if len(call.Digest) != 64 || strings.Contains(call.Args.S, token) || strings.Contains(w.Question.S, token) || !strings.Contains(w.Question.S, "are hidden") {
			t.Errorf("the journal holds %+v, %q", call, w.Question.S)
		}
		if slices.ContainsFunc(w.Choices, func(c protocol.Choice) bool { return c.Value == protocol.AllowRun }) {
			t.Error("a hidden call is offered for the run")
		}
		s.answered(w, "allow", "")
		if _, err := s.perform(t, j); err != nil {
			t.Fatal(err)
		}
		r := find[protocol.ToolResult](j)[0]
		if ran := strings.Contains(s.log(t), token); ran != (name == "kept") || ran == r.IsError {
			t.Errorf("%s: the call ran: %v, %q", name, ran, r.Content.S)
		}
	}
}

// What hides a key in a call is kept with a digest of the whole: by a key of the user, or guesses could be tried
// against the journal. Calls without a hidden part have the same digest everywhere.
func TestAHiddenPartCannotBeGuessedFromTheJournal(t *testing.T) {
	type digests struct{ call, shown string }
	of := func(line, seal string) digests {
		s, j := asking(t, "append", map[string]any{"line": line}), &journal{}
		s.turn.Workspace = "" // no two calls differ by where they act
		s.agent.Withheld, s.agent.Seal = &Withheld{}, []byte(seal)
		w := s.waits(t, j)
		return digests{find[protocol.ToolCall](j)[0].Digest, w.Shown}
	}
	mine, again, another := of(token, "mine"), of(token, "mine"), of(token, "another")
	sum := sha256.Sum256([]byte(`{"line":"` + token + `"}`))
	if guess := hex.EncodeToString(sum[:]); mine.call == guess || mine.call == "" {
		t.Errorf("the right guess shows: %s", mine.call)
	}
	if mine != again {
		t.Errorf("a later visit has %v, not %v", again, mine)
	}
	if mine.call == another.call || mine.shown == another.shown {
		t.Errorf("another key gives the same: %v", another)
	}
	if open, elsewhere := of("nothing hidden", "mine"), of("nothing hidden", "another"); open != elsewhere || open.call != "" {
		t.Errorf("a call without a hidden part has %v, elsewhere %v", open, elsewhere)
	}
}

// A run that asked before calls had digests goes on with the answer.
func TestAnAnswerToAQuestionOfAnOlderVersionCounts(t *testing.T) {
	s, j := asking(t, "append", map[string]any{"line": "one"}), &journal{}
	s.waits(t, j)
	for i, commit := range j.commits {
		if w, ok := commit[0].(protocol.WaitingFor); ok {
			w.Shown = ""
			j.commits[i][0] = w
			s.turn.Answers = []protocol.AnswerTo{{Waiting: w, Answer: protocol.Answered{Choice: "allow"}}}
		}
	}
	if _, err := s.perform(t, j); err != nil || s.log(t) != "one\n" {
		t.Errorf("got %v, %q", err, s.log(t))
	}
}
