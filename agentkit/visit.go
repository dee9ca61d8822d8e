package agentkit

import (
	"context"
	"encoding/json"
	"errors"

	"wf/agentkit/mcp"
	"wf/agentkit/prompt"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// A visit is one attempt at work: what its records tell, and what this process does for it.
type visit struct {
	*prompt.Work
	agent     *Agent
	turn      *protocol.Turn
	emit      roles.Emit
	hidden    map[string]string   // secrets, name → value
	clean     func(string) string // hides them
	workspace tool.Workspace
	servers   *mcp.Pool
	holds     *holds // nil outside of an attempt

	offer []protocol.Tool // the recorded tool list
	tools map[string]tool.Tool

	// Over all attempts of the visit.
	calls     int             // model calls made, failed ones included, summaries not
	summaries int             // model calls made for compactions
	thoughts  int             // model calls made for reflections
	used      map[string]bool // ids of tool calls
	tierKnown bool            // the sandbox event is written

	// Arguments in which something was hidden run as the model wrote them, and only in the
	// process that read them: they are never stored. Nor are a provider's own blocks.
	raw    map[string]string // call → such arguments
	lost   map[string]bool   // calls that so lost their arguments
	blocks map[string]string // seal → such a block
	masked map[string]string // calls with arguments so hidden → the digest of those
	allows map[string]string // calls that are allowed for the run: digest → by whom

	attempt
}

// attempt is what begins anew after a failed attempt, besides what prompt.Work holds of it.
type attempt struct {
	old     bool                         // the first pending call may have been started by a process that died
	paused  bool                         // the run was suspended, or an attempt failed, and it was not gone on with since
	torn    bool                         // a process died while the first pending call stood
	asked   map[string]string            // calls for which a person was asked → the digest of what was shown
	decided map[string]protocol.Approval // call → what was decided, as journaled
	refusal string                       // of a request for its size, in the words of the provider
}

func newAttempt() attempt {
	return attempt{asked: map[string]string{}, decided: map[string]protocol.Approval{}}
}

// run alternates between tools and model until there is an answer.
func (v *visit) run(ctx context.Context) (protocol.Conclusion, error) {
	for {
		switch {
		case v.Failure != nil:
			return *v.Done, v.Failure
		case v.Done != nil:
			return *v.Done, nil
		case len(v.Pending) > 0:
			if err := v.act(ctx); err != nil {
				return protocol.Conclusion{}, err
			}
		default:
			if v.Corrected != nil { // an answer was refused, and that is not journaled yet
				if err := v.journal(roles.Soon(ctx), *v.Corrected); err != nil {
					return protocol.Conclusion{}, err
				}
			}
			if err := v.Stuck(); err != nil {
				return protocol.Conclusion{}, err
			}
			if err := v.compact(ctx); err != nil {
				return protocol.Conclusion{}, err
			}
			v.Conclude()
			if err := v.ask(ctx); err != nil && !errors.Is(err, errOverflow) { // compact knows
				return protocol.Conclusion{}, err
			}
		}
	}
}

// journal writes what happened, then takes it in.
func (v *visit) journal(ctx context.Context, data ...protocol.Data) error {
	if err := v.emit(ctx, data...); err != nil {
		return err
	}
	return v.Add(data...)
}

// replay takes over what the journal holds of the visit.
func (v *visit) replay(transcript []protocol.Entry) error {
	for i := range transcript {
		data, err := v.Replay(&transcript[i])
		if err != nil {
			return err
		}
		v.take(data)
	}
	if v.lacksBlocks() {
		v.Unbind()
	}
	return nil
}

// take takes over what an event means for what is done next.
func (v *visit) take(data protocol.Data) {
	switch d := data.(type) {
	case protocol.AttemptFailed:
		if !d.Keeps {
			v.attempt = newAttempt()
			return
		}
		v.paused, v.old = true, v.torn // as below: what was started has its result
	case protocol.StepStarted:
		v.paused = false
	case protocol.ToolCall:
		v.used[d.Call] = true
		v.lost[d.Call] = roles.HasMark(d.Args.S)
		v.remask(d)
	case protocol.Usage:
		if v.counted(d) {
			v.old, v.torn = true, false
		}
	case protocol.ToolResult:
		v.old, v.torn = true, false
	case protocol.WaitingFor:
		v.asked[d.Call] = d.Shown
	case protocol.Approval:
		v.decide(d)
	case protocol.SandboxTier:
		v.tierKnown = true
	case protocol.SuspendedBy:
		// By a process that was well, and that had ended or recorded what it had started. So the first
		// pending call was never started, unless an earlier process died with it.
		v.paused, v.old = true, v.torn
	case protocol.ResumedBy:
		if !v.paused { // the run was not suspended: the process before died
			v.old, v.torn = true, true
		}
		v.paused = false
	}
}

// counted counts a model call in the journal and reports whether it was a turn. One that was given
// up is made again under the same number.
func (v *visit) counted(u protocol.Usage) bool {
	switch {
	case prompt.IsTurn(u):
		v.calls++
		return true
	case u.Stop == protocol.StopGivenUp:
	case u.Kind == protocol.UsageCompaction, u.Kind == protocol.UsageSummary:
		v.summaries++
	case u.Kind == protocol.UsageReflection:
		v.thoughts++
	}
	return false
}

// offered reads a recorded tool list.
func offered(list string) ([]protocol.Tool, error) {
	if list == "" {
		return nil, nil
	}
	var tools []protocol.Tool
	err := json.Unmarshal([]byte(list), &tools)
	return tools, err
}
