package agentkit

import (
	"encoding/json"
	"errors"
	"fmt"

	"wf/agentkit/model"
	"wf/protocol"
)

// Overflow. A server refuses what its model cannot read, whatever the config or a guess said of
// its window. The refusal is journaled with the window that it tells, and is what a compaction
// is for: each kind is tried once, then the request is made again. Where nothing is left to
// summarise, the visit fails with the numbers.
//
// The window holds for the rest of the run: Turn.Windows hands it on.

// errOverflow is a request that was refused for its size. The refusal is journaled and taken in.
var errOverflow = errors.New("the request holds more than the model reads")

// learnt is what refusals tell.
type learnt struct {
	windows map[string]int64 // tokens by model
	over    *protocol.Usage  // the newest request was refused; nil once something was done about it
	again   bool             // nothing was answered since the first refusal
	refusal string           // in the words of the provider, in the process that read it
}

// refusedFor is the event of a request that the model does not take for its size. What the
// server does not tell is estimated: what the request holds by its bytes, and the window by that,
// since it is smaller.
func (v *visit) refusedFor(name string, o *model.Overflow) protocol.Usage {
	u := protocol.Usage{Model: name, Stop: protocol.StopOverflow, Window: o.Window, Held: o.Held}
	if u.Held == 0 {
		request := sizeOf(v.list, v.request())
		u.Held = max(int64(v.density()*float64(request)), u.Window+1)
	}
	if u.Window == 0 {
		u.Window = max(1, u.Held-1)
	}
	return u
}

// density is about how many tokens a byte of the request is.
func (v *visit) density() float64 {
	switch before := v.prompt[:max(0, len(v.prompt)-2)]; {
	case v.newest > 0 && v.bytes > 0:
		return float64(v.newest) / float64(v.bytes)
	case v.turn.LastUsage > 0 && len(before) > 0:
		return float64(v.turn.LastUsage) / float64(max(1, sizeOf(v.list, before)))
	}
	return 1.0 / runesPerToken
}

// refused takes in, live or from the journal, that a request was refused for its size.
func (v *visit) refused(u protocol.Usage) {
	v.learn(u.Model, u.Window)
	if !v.again {
		v.again, v.triedPast, v.triedWork = true, false, false // to a mark that is lower now
	}
	v.over, v.newest, v.bytes = &u, u.Held, sizeOf(v.list, v.request())
	if len(v.tail) == 0 {
		v.opening = u.Held
	}
}

func (v *visit) learn(name string, window int64) {
	if known := v.windows[name]; window > 0 && (known == 0 || window < known) {
		v.windows[name] = window
	}
}

// window is how many tokens the model at hand reads at most, as far as refusals told; 0 is not
// known.
func (v *visit) window() int64 {
	if v.model < len(v.models) {
		return v.windows[v.models[v.model]]
	}
	return 0
}

// roomIn is the share of a window that a request may fill: a quarter is left for the answer, or
// as much as the role lets it hold.
func (v *visit) roomIn(window int64) int64 {
	var params map[string]json.RawMessage
	answer := int64(0)
	if json.Unmarshal([]byte(v.turn.Role.Params), &params) == nil { // else nothing bounds it
		for _, name := range []string{"max_tokens", "max_completion_tokens"} {
			var n int64
			if json.Unmarshal(params[name], &n) == nil {
				answer = max(answer, n)
			}
		}
	}
	return max(min(window*3/4, window-answer), window/4)
}

// tooLong is how a visit ends whose request was refused for its size, when nothing of it can be
// summarised.
func (v *visit) tooLong(u protocol.Usage) error {
	message := fmt.Sprintf("the model %s reads at most %d tokens, the request holds %d, and nothing more of it can be summarised. "+
		"Give the role %s less at once (its prompt, inputs, tools and newest message stay whole), or take a model with a larger window",
		u.Model, v.windows[u.Model], u.Held, v.turn.Role.Name)
	if u.Held <= v.windows[u.Model] {
		message = fmt.Sprintf("the model %s reads at most %d tokens, its answer included: the request holds %d, and the rest is "+
			"less than the answer may hold. Lower max_tokens in the params of the role %s, or take a model with a larger window",
			u.Model, v.windows[u.Model], u.Held, v.turn.Role.Name)
	}
	if v.refusal != "" {
		message += ". The provider says: " + v.refusal
	}
	return contextFull(message)
}

// contextFull is the failure of a visit whose request cannot be made small enough.
func contextFull(message string) *protocol.Failure {
	return &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: "context_full", Phase: "compaction", Message: message}, Class: "context_full",
	}
}

// unread is how many of the newest of n visits the request for a summary has to leave out, so
// that the model can read it; 0 where its window is not known.
func (v *visit) unread(live []protocol.Message, n int, most int64) int {
	left := v.window() - summaryTokens(most) - askTokens
	if v.window() == 0 {
		return 0
	}
	out := 0
	for out < n-1 && v.density()*float64(sizeOf(v.list, live[:len(live)-2*out])) > float64(left) {
		out++
	}
	return out
}

// askTokens is room for the words that ask for a summary.
const askTokens = 300
