package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/prompt/prompttest"
	"wf/protocol"
	"wf/roles"
)

var (
	_ roles.Performer = Agent{}
	_ roles.Preparer  = Agent{}
)

// journal keeps commits as the engine would, and can stop after a number of them: a slow one
// has then lost those for which nobody waited.
type journal struct {
	commits [][]protocol.Data
	deltas  []protocol.Delta
	stop    int // refuse the commit after this many; 0 is never
	slow    bool
	durable int // commits that someone waited for
}

var errKilled = errors.New("killed")

func (j *journal) emit(ctx context.Context, data ...protocol.Data) error {
	if len(data) > 0 {
		if d, ok := data[0].(protocol.Delta); ok {
			j.deltas = append(j.deltas, d)
			return nil
		}
		if j.stop > 0 && len(j.commits) == j.stop {
			if j.slow {
				j.commits = j.commits[:j.durable]
			}
			return errKilled
		}
		j.commits = append(j.commits, data)
	}
	if !roles.IsSoon(ctx) {
		j.durable = len(j.commits)
	}
	return ctx.Err()
}

// transcript is what the commits read back as: texts of any length inline.
func (j *journal) transcript(t testing.TB) []protocol.Entry {
	t.Helper()
	step := "coder#1"
	var out []protocol.Entry
	for _, commit := range j.commits {
		for _, d := range commit {
			if draft, ok := d.(protocol.CompactionDraft); ok {
				d = draft.Compacted
			}
			e := protocol.Event{Seq: protocol.Seq(len(out) + 1), Type: d.EventType(), Step: &step}
			if run, ok := d.(ofRun); ok {
				d, e.Step = run.Data, nil
			}
			e.Data = encode(t, d)
			out = append(out, protocol.Entry{Event: e})
		}
	}
	return out
}

// ofRun is data of an event that belongs to the run.
type ofRun struct{ protocol.Data }

func encode(t testing.TB, d protocol.Data) cbor.RawMessage {
	t.Helper()
	v := reflect.New(reflect.TypeOf(d))
	v.Elem().Set(reflect.ValueOf(d))
	long := map[string]string{}
	for i, text := range protocol.Texts(v.Interface()) {
		if len(text.S) > protocol.InlineMax {
			mark := fmt.Sprintf("\x00%d", i)
			long[mark], text.S = text.S, mark
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

var link, step = prompttest.Link, prompttest.Step

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
