package agentkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

var (
	_ roles.Performer = Agent{}
	_ roles.Preparer  = Agent{}
)

// journal keeps commits as the engine would, and can stop after a number of them.
type journal struct {
	commits [][]protocol.Data
	deltas  []protocol.Delta
	stop    int // refuse the commit after this many; 0 is never
}

var errKilled = errors.New("killed")

func (j *journal) emit(ctx context.Context, data ...protocol.Data) error {
	if d, ok := data[0].(protocol.Delta); ok {
		j.deltas = append(j.deltas, d)
		return nil
	}
	if j.stop > 0 && len(j.commits) == j.stop {
		return errKilled
	}
	j.commits = append(j.commits, data)
	return ctx.Err()
}

// transcript is what the commits read back as: texts of any length inline.
func (j *journal) transcript(t testing.TB) []protocol.Entry {
	t.Helper()
	var out []protocol.Entry
	for _, commit := range j.commits {
		for _, d := range commit {
			out = append(out, protocol.Entry{Event: protocol.Event{Seq: protocol.Seq(len(out) + 1), Type: d.EventType(), Data: encode(t, d)}})
		}
	}
	return out
}

func encode(t testing.TB, d protocol.Data) cbor.RawMessage {
	t.Helper()
	v := reflect.New(reflect.TypeOf(d))
	v.Elem().Set(reflect.ValueOf(d))
	long := map[string]string{}
	if texts, ok := v.Interface().(protocol.Texts); ok {
		for i, text := range texts.Texts() {
			if len(text.S) > protocol.InlineMax {
				mark := fmt.Sprintf("\x00%d", i)
				long[mark], text.S = text.S, mark
			}
		}
	}
	b, err := cbor.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := cbor.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for k, field := range fields {
		if s, ok := field.(string); ok && long[s] != "" {
			fields[k] = long[s]
		}
	}
	if len(long) == 0 {
		return b
	}
	if b, err = cbor.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return b
}

// types lists the events, commits joined by +.
func (j *journal) types() []string {
	var out []string
	for _, commit := range j.commits {
		var names []string
		for _, d := range commit {
			names = append(names, string(d.EventType()))
		}
		out = append(out, strings.Join(names, "+"))
	}
	return out
}

func find[D protocol.Data](j *journal) []D {
	var out []D
	for _, commit := range j.commits {
		for _, d := range commit {
			if d, ok := d.(D); ok {
				out = append(out, d)
			}
		}
	}
	return out
}

// recorder notes the requests of a model.
type recorder struct {
	llms.Model
	sent *[]string
}

func (r recorder) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	b, err := json.Marshal(messages)
	if err != nil {
		return nil, err
	}
	*r.sent = append(*r.sent, string(b))
	return r.Model.GenerateContent(ctx, messages, options...)
}

// stage is one role coder#1 in a temporary workspace, with a script to follow.
type stage struct {
	agent Agent
	turn  protocol.Turn
	sent  []string
}

const answerSchema = `{"type":"object","required":["status"],"properties":{"status":{"enum":["done","stuck"]}}}`

func newStage(t testing.TB, replies string, tools ...string) *stage {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "replies.yaml"), []byte(replies), 0o666); err != nil {
		t.Fatal(err)
	}
	workspace := filepath.Join(dir, "work")
	if err := os.Mkdir(workspace, 0o777); err != nil {
		t.Fatal(err)
	}
	s := &stage{}
	s.agent.Models = func(name, dir string) (llms.Model, error) {
		m, err := Standard().Open(name, dir)
		if err != nil {
			return nil, err
		}
		return recorder{m, &s.sent}, nil
	}
	s.turn = protocol.Turn{
		Run: "run", Step: protocol.StepID{Role: "coder", N: 1, Index: -1}, Visit: 1, Attempt: 1,
		Role:   protocol.Role{Name: "coder", Action: protocol.ActPrompt, Tools: tools},
		Models: []string{"script/replies.yaml"}, Workspace: workspace, File: filepath.Join(dir, "flow.yaml"),
		History: protocol.History{Format: 1, Role: "coder", System: "You fix.", Schema: answerSchema,
			Visit: protocol.Past{Role: "coder", Visit: 1, EdgePrompt: "Fix it."}},
	}
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil {
		t.Fatal(err)
	}
	s.turn.History.Tools = p.Tools
	return s
}

func (s *stage) perform(t testing.TB, j *journal) (protocol.Conclusion, error) {
	t.Helper()
	s.turn.Transcript = j.transcript(t)
	return s.agent.Perform(t.Context(), s.turn, j.emit)
}

func TestAnAnswerConcludesTheVisit(t *testing.T) {
	s := newStage(t, `coder#1: [{text: "---\r\nstatus: done\r\n---\r\nFixed.\r\n\n", thinking: hm}]`)
	j := &journal{}
	c, err := s.perform(t, j)
	if err != nil {
		t.Fatal(err)
	}
	if *c.Text != "---\nstatus: done\n---\nFixed." || string(c.Data) != `{"status":"done"}` {
		t.Errorf("concluded %q with %s", *c.Text, c.Data)
	}
	if d := cmp.Diff([]string{"prompt", "thinking+text+usage"}, j.types()); d != "" {
		t.Error(d)
	}
	messages, err := BuildMessages(s.turn.History)
	if err != nil {
		t.Fatal(err)
	}
	if got := find[protocol.PromptSent](j)[0].Digest; got != Digest("", messages) {
		t.Errorf("the digest is %s", got)
	}
	if u := find[protocol.Usage](j)[0]; u.Model != "script/replies.yaml" || *u.Input == 0 || *u.Output == 0 || u.Cached != nil {
		t.Errorf("usage %+v", u)
	}
	if d := cmp.Diff([]protocol.Delta{{Kind: "thinking", Text: "hm"}, {Kind: "text", Text: "---\r\nstatus: done\r\n---\r\nFixed.\r\n\n"}}, j.deltas); d != "" {
		t.Error(d)
	}
}

func TestW11AnInvalidAnswerIsCorrectedTwiceAtMost(t *testing.T) {
	s := newStage(t, `coder#1:
  - {text: "Done!"}
  - {text: "---\nstatus: [done\n---\n"}
  - {text: "---\nstatus: finished\n---\nSee above."}
  - {text: "---\nstatus: done\n---\n"}
`)
	j := &journal{}
	c, err := s.perform(t, j)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Phase != "output_validation" || f.Code != "output_invalid" || f.Class != "invalid_output" || f.Suspend {
		t.Fatalf("got %#v", err)
	}
	if !strings.Contains(f.Message, "/status: value must be one of 'done', 'stuck'") {
		t.Errorf("the failure says %q", f.Message)
	}
	if c.Text == nil || !strings.HasSuffix(*c.Text, "See above.") || c.Data != nil {
		t.Errorf("the output of the failed visit is %v", c)
	}
	if n := len(find[protocol.Usage](j)); n != 3 {
		t.Errorf("%d usages are counted", n)
	}
	for i, want := range []string{"it begins with \\\"Done!\\\"", "not YAML"} {
		if !strings.Contains(s.sent[i+1], want) {
			t.Errorf("correction %d does not say %s: %s", i+1, want, s.sent[i+1])
		}
	}
	for i := 1; i < len(s.sent); i++ {
		if !strings.HasPrefix(s.sent[i], strings.TrimSuffix(s.sent[i-1], "]")) {
			t.Errorf("request %d does not begin with request %d", i+1, i)
		}
	}
}

func TestAnEmptyAnswerIsCorrectedToo(t *testing.T) {
	s := newStage(t, `coder#1: [{text: ""}, {text: "hello"}]`)
	s.turn.History.Schema = ""
	j := &journal{}
	c, err := s.perform(t, j)
	if err != nil || *c.Text != "hello" || c.Data != nil {
		t.Fatalf("got %v, %v", c, err)
	}
	if !strings.Contains(s.sent[1], "the answer is empty") || !strings.Contains(s.sent[1], "(no text)") {
		t.Errorf("sent %s", s.sent[1])
	}
}

// busy uses several tools at once, makes mistakes, and answers at last.
const busy = `coder#1:
  - {text: "I look.", tools: [{tool: list_files, args: {path: .}}, {tool: append, args: {line: one}}, {tool: append, args: {line: two}}]}
  - {tools: [{tool: nonsense, args: {}}, {tool: append, args: "{not json"}, {tool: append, args: "[]"}]}
  - {tool: append, args: {line: three}, thinking: "one more"}
  - {text: ""}
  - {text: "Done."}
  - {text: "---\nstatus: done\n---\n"}
`

// appendTool writes a line to a file: an effect that must happen once.
var appendTool = tool.Tool{
	Name: "append", Description: "append a line", Parameters: protocol.JSON(`{"type":"object"}`),
	Run: func(_ context.Context, at tool.Workspace, raw json.RawMessage) (tool.Result, error) {
		var args struct{ Line string }
		if err := json.Unmarshal(raw, &args); err != nil {
			return tool.Result{}, err
		}
		f, err := os.OpenFile(filepath.Join(at.Dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return tool.Result{}, err
		}
		_, err = f.WriteString(args.Line + "\n")
		return tool.Result{Content: strings.Repeat(args.Line, 500)}, errors.Join(err, f.Close())
	},
}

func busyStage(t testing.TB) *stage {
	s := newStage(t, busy)
	s.agent.Tools = []tool.Tool{appendTool}
	s.turn.Role.Tools = []string{"append", "list_files"}
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil {
		t.Fatal(err)
	}
	s.turn.History.Tools = p.Tools
	return s
}

func (s *stage) log(t testing.TB) string {
	b, err := os.ReadFile(filepath.Join(s.turn.Workspace, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

func TestToolsRunInOrderAndMistakesAreToldToTheModel(t *testing.T) {
	s, j := busyStage(t), &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"prompt", "text+tool_call+tool_call+tool_call+usage", "tool_result", "tool_result", "tool_result",
		"tool_call+tool_call+tool_call+usage", "tool_result", "tool_result", "tool_result",
		"thinking+tool_call+usage", "tool_result", "text+usage", "text+usage", "text+usage",
	}
	if d := cmp.Diff(want, j.types()); d != "" {
		t.Error(d)
	}
	if s.log(t) != "one\ntwo\nthree\n" {
		t.Errorf("the log is %q", s.log(t))
	}
	results := find[protocol.ToolResult](j)
	for i, want := range []string{`there is no tool "nonsense"; there are append, list_files`, "not valid JSON", "must be a JSON object"} {
		if r := results[3+i]; !r.IsError || !strings.Contains(r.Content.S, want) {
			t.Errorf("result %d is %v", 3+i, r)
		}
	}
}

func TestW20AKilledVisitGoesOnWhereItStopped(t *testing.T) {
	whole := &journal{}
	s := busyStage(t)
	c, err := s.perform(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; stop < len(whole.commits); stop++ {
		t.Run(fmt.Sprintf("after commit %d", stop), func(t *testing.T) {
			again := busyStage(t)
			j := &journal{stop: stop}
			if _, err := again.perform(t, j); !errors.Is(err, errKilled) {
				t.Fatalf("got %v", err)
			}
			// The kill came after the tool had run and before its result was durable.
			last := whole.commits[stop][0]
			effect := false
			if r, ok := last.(protocol.ToolResult); ok && !r.IsError && r.Call != "call_1_1" {
				effect = true
			}
			j.stop = 0
			got, err := again.perform(t, j)
			if err != nil {
				t.Fatal(err)
			}
			if *got.Text != *c.Text || string(got.Data) != string(c.Data) {
				t.Errorf("concluded %q with %s", *got.Text, got.Data)
			}
			if d := cmp.Diff(whole.types(), j.types()); d != "" {
				t.Error(d)
			}
			if again.log(t) != "one\ntwo\nthree\n" {
				t.Errorf("effects happened %q", again.log(t))
			}
			unknown := 0
			for _, r := range find[protocol.ToolResult](j) {
				if strings.Contains(r.Content.S, "outcome of this call is unknown") {
					unknown++
				}
			}
			if effect != (unknown == 1) || unknown > 1 {
				t.Errorf("%d calls have an unknown outcome", unknown)
			}
			if !effect {
				if d := cmp.Diff(unique(s.sent), unique(again.sent)); d != "" {
					t.Errorf("the requests differ: %s", d)
				}
			}
		})
	}
}

// unique drops the repetition of a request whose reply was lost.
func unique(sent []string) []string {
	var out []string
	for _, r := range sent {
		if len(out) == 0 || out[len(out)-1] != r {
			out = append(out, r)
		}
	}
	return out
}

func TestARetryBeginsAnewFromTheFirstRequest(t *testing.T) {
	s := newStage(t, `coder#1: [{text: a}, {text: b}, {text: c}, {text: "---\nstatus: done\n---\n"}]`)
	j := &journal{}
	if _, err := s.perform(t, j); err == nil {
		t.Fatal("the first attempt worked")
	}
	j.commits = append(j.commits, []protocol.Data{protocol.AttemptFailed{Attempt: 1, Error: protocol.ErrorInfo{Code: "output_invalid"}}})
	s.turn.Attempt = 2
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	if s.sent[3] != s.sent[0] {
		t.Errorf("attempt 2 began with %s", s.sent[3])
	}
	if d := cmp.Diff([]string{"prompt", "text+usage", "text+usage", "text+usage", "attempt_failed", "prompt", "text+usage"}, j.types()); d != "" {
		t.Error(d)
	}
}

func TestTheSameCallForEverIsBoundedByTurns(t *testing.T) {
	s := newStage(t, "coder#1: ["+strings.Repeat("{tool: list_files, args: {path: .}},", 30)+"]", "list_files")
	s.turn.Role.MaxTurns = 5
	j := &journal{}
	_, err := s.perform(t, j)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Code != "max_turns" || f.Suspend {
		t.Fatalf("got %v", err)
	}
	if n := len(s.sent); n != 5 {
		t.Errorf("%d requests were sent", n)
	}
}

const asks = `coder#1:
  - {tools: [{tool: shell, args: {command: "echo hello > out && cat out"}}, {tool: list_files, args: {path: .}}]}
  - {text: "---\nstatus: done\n---\n"}
`

func TestShellAsksAndGoesOnWithTheAnswer(t *testing.T) {
	for choice, c := range map[string]struct {
		content string
		isError bool
		files   string
	}{
		"allow": {"exit code: 0\nstdout:\nhello", false, "out\n"},
		"deny":  {"error: a person denied this call: not here", true, "(empty)"},
	} {
		t.Run(choice, func(t *testing.T) {
			s, j := newStage(t, asks, "shell", "list_files"), &journal{}
			if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) {
				t.Fatalf("got %v", err)
			}
			if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) {
				t.Fatalf("got %v", err)
			}
			waits := find[protocol.WaitingFor](j)
			if len(waits) != 1 || waits[0].Kind != protocol.WaitApproval || !strings.Contains(waits[0].Question.S, "echo hello > out && cat out") {
				t.Fatalf("asked %+v", waits)
			}
			s.turn.Answers = []protocol.AnswerTo{{Waiting: waits[0], Answer: protocol.Answered{By: "kim", Choice: choice, Text: protocol.NewText("not here")}}}
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]protocol.Approval{{Call: "call_1_1", Tool: "shell", Decision: choice, By: "kim"}}, find[protocol.Approval](j)); d != "" {
				t.Error(d)
			}
			results := find[protocol.ToolResult](j)
			if results[0].Content.S != c.content || results[0].IsError != c.isError {
				t.Errorf("the result is %+v", results[0])
			}
			if results[1].Content.S != c.files {
				t.Errorf("the files are %q", results[1].Content.S)
			}
			if d := cmp.Diff([]string{"prompt", "tool_call+tool_call+usage", "waiting", "approval", "tool_result", "tool_result", "text+usage"}, j.types()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestW20AnApprovedCallThatWasCutOffIsNotRepeated(t *testing.T) {
	s, j := newStage(t, asks, "shell", "list_files"), &journal{}
	if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) {
		t.Fatalf("got %v", err)
	}
	s.turn.Answers = []protocol.AnswerTo{{Waiting: find[protocol.WaitingFor](j)[0], Answer: protocol.Answered{Choice: "allow"}}}
	j.stop = len(j.commits) + 1 // the approval is durable, the result is not
	if _, err := s.perform(t, j); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	j.stop = 0
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	if r := find[protocol.ToolResult](j)[0]; !strings.Contains(r.Content.S, "unknown") {
		t.Errorf("the result is %+v", r)
	}
}

func TestPoliciesOfRoleAgentAndTool(t *testing.T) {
	for name, c := range map[string]struct {
		role  []protocol.NamedTemplate
		agent map[string]tool.Policy
		want  tool.Policy
	}{
		"the tool's own":             {nil, nil, tool.Ask},
		"the agent's for all":        {nil, map[string]tool.Policy{"*": tool.Auto}, tool.Auto},
		"the agent's for the tool":   {nil, map[string]tool.Policy{"*": tool.Auto, "shell": tool.Deny}, tool.Deny},
		"the role's before any":      {[]protocol.NamedTemplate{{Name: "shell", Value: "auto"}}, map[string]tool.Policy{"*": tool.Deny}, tool.Auto},
		"the role's as a JSON value": {[]protocol.NamedTemplate{{Name: "shell", JSON: `"deny"`}}, nil, tool.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			s, j := newStage(t, asks, "shell", "list_files"), &journal{}
			s.turn.Role.Approvals, s.agent.Approve = c.role, c.agent
			_, err := s.perform(t, j)
			got := tool.Auto
			switch {
			case errors.Is(err, protocol.ErrWaiting):
				got = tool.Ask
			case err != nil:
				t.Fatal(err)
			case strings.Contains(find[protocol.ToolResult](j)[0].Content.S, "not allowed"):
				got = tool.Deny
			}
			if got != c.want {
				t.Errorf("the policy is %s, want %s", got, c.want)
			}
		})
	}
}

func TestSecretsReachTheCommandButNotTheJournal(t *testing.T) {
	s := newStage(t, `coder#1: [{tool: shell, args: {command: "echo key=$KEY; echo $KEY >&2; env | grep -c OTHER"}}, {text: "---\nstatus: done\n---\n"}]`, "shell")
	s.agent.Approve = map[string]tool.Policy{"shell": tool.Auto}
	s.agent.Secret = func(name string) (string, bool) { return "s3cr3t-value", name == "API" }
	s.turn.Secrets = []string{"API", "UNSET"}
	s.turn.Env = map[string]string{"KEY": "Bearer " + protocol.SecretRef("API")}
	t.Setenv("OTHER", "x")
	j := &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	want := "exit code: 1\nstdout:\nkey=Bearer [secret:API]\n0\nstderr:\nBearer [secret:API]"
	if got := find[protocol.ToolResult](j)[0].Content.S; got != want {
		t.Errorf("got %q", got)
	}
	all, err := json.Marshal([]any{j.commits, j.deltas, s.sent})
	if err != nil || bytes.Contains(all, []byte("s3cr3t")) {
		t.Errorf("the secret got out (%v)", err)
	}

	s.turn.Env["KEY"] = protocol.SecretRef("UNSET")
	var f *protocol.Failure
	if _, err := s.perform(t, &journal{}); !errors.As(err, &f) || !f.Suspend || !strings.Contains(f.Message, "UNSET") {
		t.Errorf("a missing secret gives %v", err)
	}
}

func TestTemporaryFailuresAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `coder#1: [{error: {status: 503}}, {error: {status: 429, retry_after: 7s}}, {text: "---\nstatus: done\n---\n"}]`)
		j, start := &journal{}, time.Now()
		if _, err := s.perform(t, j); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != DefaultBackoff+7*time.Second {
			t.Errorf("waited %v", d)
		}
		if d := cmp.Diff([]string{"prompt", "usage", "usage", "text+usage"}, j.types()); d != "" {
			t.Error(d)
		}
		if u := find[protocol.Usage](j)[0]; u.Input != nil || u.Output != nil {
			t.Errorf("a failed call used %+v", u)
		}
	})
}

func TestFailuresThatLastEndTheAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		replies string
		class   string
		suspend bool
		message string
	}{
		"server errors":   {strings.Repeat("{error: {status: 503}},", 9), "server_error", false, "the model script/replies.yaml failed to answer (status 503)"},
		"rate limit":      {strings.Repeat("{error: {status: 429}},", 9), "rate_limit", false, "the model script/replies.yaml refuses: too many requests (status 429)"},
		"a far Retry":     {"{error: {status: 429, retry_after: 1h}}", "rate_limit", false, "the model script/replies.yaml refuses: too many requests (status 429)"},
		"a bad request":   {"{error: {status: 400}}", "invalid", false, "the model script/replies.yaml refuses the request (status 400)"},
		"a bad key":       {"{error: {status: 401, message: no key}}", "unavailable", true, "model script/replies.yaml: status 401: no key"},
		"unmatched calls": {"", "unavailable", true, "model script/replies.yaml has no reply for coder#1, call 1: the script holds none at all"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				replies := "coder#1: [" + c.replies + "]"
				if c.replies == "" {
					replies = "{}"
				}
				_, err := newStage(t, replies).perform(t, &journal{})
				var f *protocol.Failure
				if !errors.As(err, &f) {
					t.Fatalf("got %v", err)
				}
				if f.Class != c.class || f.Suspend != c.suspend || f.Message != c.message {
					t.Errorf("got %+v", f)
				}
				if errors.Is(err, protocol.ErrModel) != c.suspend {
					t.Errorf("ErrModel is wrapped: %v", !c.suspend)
				}
			})
		})
	}
}

func TestK15AnotherModelTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `coder#1: [{error: {status: 503}}, {error: {status: 503}}, {error: {status: 503}}, {error: {status: 503}}]`)
		dir := filepath.Dir(s.turn.File)
		other := "coder#1: [{text: a},{text: a},{text: a},{text: a}, {tool: list_files, args: {path: .}}, {text: \"---\\nstatus: done\\n---\\n\"}]"
		if err := os.WriteFile(filepath.Join(dir, "other.yaml"), []byte(other), 0o666); err != nil {
			t.Fatal(err)
		}
		s.turn.Models = []string{"nowhere/x", "script/replies.yaml", "script/other.yaml"}
		j := &journal{}
		if _, err := s.perform(t, j); err != nil {
			t.Fatal(err)
		}
		want := []protocol.ModelFallback{
			{From: "nowhere/x", To: "script/replies.yaml", Reason: "unavailable"},
			{From: "script/replies.yaml", To: "script/other.yaml", Reason: "server_error"},
		}
		if d := cmp.Diff(want, find[protocol.ModelFallback](j)); d != "" {
			t.Error(d)
		}
	})
}

func TestCancelledIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `coder#1: [{text: x, delay: 1h}]`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stopped, stop := context.WithCancel(ctx)
		time.AfterFunc(time.Second, stop)
		if _, err := s.agent.Perform(stopped, s.turn, (&journal{}).emit); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestUnknownProvidersSayWhatToDo(t *testing.T) {
	_, err := Standard().Open("gpt-5", "")
	if !errors.Is(err, protocol.ErrModel) {
		t.Fatalf("got %v", err)
	}
	for _, fix := range []string{"--model", "OPENAI_BASE_URL", "script/FILE"} {
		if !strings.Contains(err.Error(), fix) {
			t.Errorf("%v does not name %s", err, fix)
		}
	}
}

func TestToolListsAreSortedCanonicalAndWithoutPaths(t *testing.T) {
	s := newStage(t, "{}", "write_file", "shell", "read_file", "edit_file", "list_files", "shell")
	list := s.turn.History.Tools
	canonical, err := protocol.CanonicalizeJSON([]byte(list))
	if err != nil || string(canonical) != list {
		t.Errorf("not canonical: %s (%v)", list, err)
	}
	var names []string
	offer, err := offered(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range offer {
		names = append(names, o.Name)
	}
	if d := cmp.Diff([]string{"edit_file", "list_files", "read_file", "shell", "write_file"}, names); d != "" {
		t.Error(d)
	}
	if strings.Contains(list, s.turn.Workspace) {
		t.Errorf("the workspace is in %s", list)
	}
	s.turn.Role.Tools = nil
	if p, err := s.agent.Prepare(t.Context(), s.turn); err != nil || p.Tools != list {
		t.Errorf("a visit that resumes has %s (%v)", p.Tools, err)
	}
	if _, err := tool.Named([]string{"shel"}, tool.All()); err == nil || !strings.Contains(err.Error(), "shell") {
		t.Errorf("got %v", err)
	}
}
