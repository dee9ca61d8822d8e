package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

const twoCalls = `coder#1:
  - {tools: [{tool: append, args: {line: one}}, {tool: append, args: {line: two}}]}
  - {text: "---\nstatus: done\n---\n"}
`

// pausing is a visit of two calls; around may stop it while a call runs.
func pausing(t *testing.T, around func(run func() (tool.Result, error)) (tool.Result, error)) *stage {
	s := newStage(t, twoCalls)
	slow := appendTool
	slow.Run = func(ctx context.Context, at tool.Workspace, raw json.RawMessage) (tool.Result, error) {
		return around(func() (tool.Result, error) { return appendTool.Run(ctx, at, raw) })
	}
	s.agent.Tools = []tool.Tool{slow}
	s.turn.Role.Tools = []string{"append"}
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil {
		t.Fatal(err)
	}
	s.turn.History.Tools = p.Tools
	return s
}

func unknowns(j *journal) (n int) {
	for _, r := range find[protocol.ToolResult](j) {
		if r.Content.S == unknownOutcome.Content {
			n++
		}
	}
	return n
}

// A call that was not started before the run was suspended runs when it is gone on with; one
// that a process died with may have been started.
func TestX04ACallThatASuspensionKeptBackRunsLater(t *testing.T) {
	suspended, resumed := ofRun{protocol.SuspendedBy{Reason: protocol.ByLimit}}, ofRun{protocol.ResumedBy{By: "me"}}
	for _, c := range []struct {
		name  string
		then  []protocol.Data // after the reply with its calls
		lines string
	}{
		{"suspended, and gone on with", []protocol.Data{suspended, resumed}, "one\ntwo\n"},
		{"suspended twice", []protocol.Data{suspended, resumed, suspended, resumed}, "one\ntwo\n"},
		{"died", []protocol.Data{resumed}, "two\n"},
		{"died, then suspended before the visit went on", []protocol.Data{resumed, suspended, resumed}, "two\n"},
		{"suspended, gone on with, died", []protocol.Data{suspended, resumed, resumed}, "two\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pausing(t, func(run func() (tool.Result, error)) (tool.Result, error) { return run() })
			j := &journal{stop: 2}
			if _, err := s.perform(t, j); !errors.Is(err, errKilled) {
				t.Fatalf("got %v", err)
			}
			if s.log(t) != "one\n" {
				t.Fatalf("before it %q happened", s.log(t))
			}
			// The first effect is taken back: the journal knows nothing of it.
			s = pausing(t, func(run func() (tool.Result, error)) (tool.Result, error) { return run() })
			j.commits, j.stop = append(j.commits, c.then), 0
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.lines, s.log(t)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Whatever a stopped call did is in the journal before the run is suspended.
func TestX04AStoppedCallLeavesItsResult(t *testing.T) {
	for _, c := range []struct {
		name    string
		cut     bool // in the middle, or when it had just ended
		unknown int
		lines   string
	}{
		{"in the middle", true, 1, "two\n"},
		{"at its end", false, 0, "one\ntwo\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			calls := 0
			s := pausing(t, func(run func() (tool.Result, error)) (tool.Result, error) {
				if calls++; calls > 1 {
					return run()
				}
				stop()
				if c.cut {
					return tool.Result{}, ctx.Err()
				}
				return run()
			})
			j := &journal{}
			if _, err := s.agent.Perform(ctx, s.turn, j.emit); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			j.commits = append(j.commits, []protocol.Data{ofRun{protocol.SuspendedBy{Reason: protocol.ByInterrupt}}, ofRun{protocol.ResumedBy{}}})
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			if n := unknowns(j); n != c.unknown || s.log(t) != c.lines {
				t.Errorf("%d outcomes are unknown, %q happened", n, s.log(t))
			}
			if n := len(find[protocol.ToolResult](j)); n != 2 || !strings.Contains(s.sent[len(s.sent)-1], "two") {
				t.Errorf("two calls have %d results", n)
			}
		})
	}
}

// A call ends before another process may make it again. Where none did, the visit goes on as after a crash.
func TestACallThatWasCutSinceAnotherProcessMayTakeOver(t *testing.T) {
	for _, c := range []struct {
		name       string
		repeatable bool
		unknown    int
		lines      string
	}{
		{"a call that acts", false, 1, "two\n"},
		{"a call that can be repeated", true, 0, "one\ntwo\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cut context.CancelFunc
			begun, ended := 0, 0
			s := pausing(t, func(run func() (tool.Result, error)) (tool.Result, error) {
				if begun > 1 {
					return run()
				}
				cut()
				return tool.Result{}, context.Canceled
			})
			s.agent.Tools[0].Repeatable = c.repeatable
			ctx := roles.WithActing(t.Context(), func(ctx context.Context) (acting context.Context, end context.CancelFunc, err error) {
				acting, cut = context.WithCancel(ctx)
				begun++
				return acting, func() { ended++; cut() }, nil
			})
			j := &journal{}
			if _, err := s.agent.Perform(ctx, s.turn, j.emit); err != nil {
				t.Fatal(err)
			}
			if n := unknowns(j); n != c.unknown || s.log(t) != c.lines {
				t.Errorf("%d outcomes are unknown, %q happened", n, s.log(t))
			}
			if n := len(find[protocol.ToolResult](j)); n != 2 || begun != ended {
				t.Errorf("two calls have %d results; %d began to act, %d ended", n, begun, ended)
			}
		})
	}
}

// What another process has taken over begins nothing.
func TestNoCallBeginsUnderALostClaim(t *testing.T) {
	s := pausing(t, func(run func() (tool.Result, error)) (tool.Result, error) { return run() })
	ctx := roles.WithActing(t.Context(), func(context.Context) (context.Context, context.CancelFunc, error) {
		return nil, nil, protocol.ErrFenced
	})
	if _, err := s.agent.Perform(ctx, s.turn, (&journal{}).emit); !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("got %v", err)
	}
	if s.log(t) != "" {
		t.Errorf("%q happened", s.log(t))
	}
}
