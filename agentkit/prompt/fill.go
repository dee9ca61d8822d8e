package prompt

import (
	"encoding/json"
	"fmt"

	"wf/protocol"
)

// DefaultWatermark holds, in tokens, where neither the role names one nor the model's window is
// known.
const DefaultWatermark = 32_000

// Shares of what a model reads.
const (
	runesPerToken = 4
	askTokens     = 300 // room for the words that ask for a summary
)

// fill is how full the context of an attempt is, by the model's own counts. A server refuses what
// its model cannot read, whatever the config or a guess said of its window. The refusal is
// journaled with the window that it tells, which holds for the rest of the run: Turn.Windows
// hands it on.
type fill struct {
	opening   int64           // tokens of P_k, by the first call on it; 0 is not known
	newest    int64           // tokens of the newest request; 0 is not known
	bytes     int             // its size
	triedPast bool            // the conversation was compacted, and no count since was below the watermark
	triedWork bool            // so was the work of the visit
	over      *protocol.Usage // the newest request was refused; nil once something was done about it
	repeated  bool            // nothing was answered since the first refusal
	behind    int             // messages since P_k that were said behind another prefix than the present one
}

// watermark is where compaction sets in. It is firm if it was configured for the model: a guess of
// ours fails no visit.
func (w *Work) watermark() (tokens int64, firm bool) {
	tokens, firm = DefaultWatermark, false
	if c := w.turn.Role.Compaction; c != nil && c.Watermark > 0 {
		tokens, firm = c.Watermark, true
	} else if w.window != nil && w.Model() != "" {
		if n := w.window(w.Model()); n > 0 {
			tokens, firm = int64(n)*3/4, true
		}
	}
	if n := w.windows[w.Model()]; n > 0 && w.roomIn(n) < tokens {
		tokens, firm = w.roomIn(n), true
	}
	return tokens, firm
}

// measure takes in what the model counted, before its reply is added.
func (w *Work) measure(u protocol.Usage) {
	w.Truncated = u.Stop == protocol.StopLength
	if u.Input == nil {
		return
	}
	w.newest, w.bytes, w.repeated = *u.Input, w.size(), false
	if len(w.tail) == 0 {
		w.opening = w.newest
	}
	if most, _ := w.watermark(); w.newest <= most {
		w.triedPast, w.triedWork = false, false
	}
}

// Refusal is the event of a request that the model does not take for its size. What the server
// does not tell (0) is estimated: what the request holds by its bytes, and the window by that,
// since it is smaller.
func (w *Work) Refusal(model string, window, held int64) protocol.Usage {
	if held == 0 {
		held = max(int64(w.density()*float64(w.size())), window+1)
	}
	if window == 0 {
		window = max(1, held-1)
	}
	return protocol.Usage{Model: model, Stop: protocol.StopOverflow, Window: window, Held: held}
}

// refused takes in that a request was refused for its size. Each kind of Cut is tried once then.
func (w *Work) refused(u protocol.Usage) {
	if known := w.windows[u.Model]; u.Window > 0 && (known == 0 || u.Window < known) {
		w.windows[u.Model] = u.Window
	}
	if !w.repeated {
		w.repeated, w.triedPast, w.triedWork = true, false, false // to a mark that is lower now
	}
	w.over, w.newest, w.bytes = &u, u.Held, w.size()
	if len(w.tail) == 0 {
		w.opening = u.Held
	}
}

// Fits is an error where a model is known not to read so much.
func (w *Work) Fits(model string, messages []protocol.Message) error {
	if held := int64(w.density() * float64(sizeOf(w.turn.History.Tools, messages))); w.windows[model] > 0 && held > w.windows[model] {
		return fmt.Errorf("the model %s reads at most %d tokens: what is to be summarised holds about %d", model, w.windows[model], held)
	}
	return nil
}

// density is about how many tokens a byte of the request is.
func (w *Work) density() float64 {
	switch before := w.Prompt[:max(0, len(w.Prompt)-2)]; {
	case w.newest > 0 && w.bytes > 0:
		return float64(w.newest) / float64(w.bytes)
	case w.turn.LastUsage > 0 && len(before) > 0:
		return float64(w.turn.LastUsage) / float64(max(1, sizeOf(w.turn.History.Tools, before)))
	}
	return 1.0 / runesPerToken
}

// roomIn is the share of a window that a request may fill: a quarter is left for the answer, or
// as much as the role lets it hold.
func (w *Work) roomIn(window int64) int64 {
	var params map[string]json.RawMessage
	answer := int64(0)
	if json.Unmarshal([]byte(w.turn.Role.Params), &params) == nil { // else nothing bounds it
		for _, name := range []string{"max_tokens", "max_completion_tokens"} {
			var n int64
			if json.Unmarshal(params[name], &n) == nil {
				answer = max(answer, n)
			}
		}
	}
	return max(min(window*3/4, window-answer), window/4)
}

// lowOf is what a compaction aims at.
func lowOf(watermark int64) int64 { return watermark / 4 }

// summaryTokens is the share of it that a summary may take.
func summaryTokens(watermark int64) int64 { return min(2_000, lowOf(watermark)/4) }

// size is that of the request.
func (w *Work) size() int { return sizeOf(w.turn.History.Tools, w.Prompt) + sizeOf("", w.tail) }

// sizeOf is how many bytes a request holds, near enough to compare parts of it.
func sizeOf(tools string, messages []protocol.Message) int {
	n := len(tools)
	for i := range messages {
		m := &messages[i]
		n += len(m.Content) + len(m.Opaque)
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n
}

// Estimate is about how many tokens a request holds, where the provider reported no usage.
func Estimate(offer []protocol.Tool, messages []protocol.Message) int64 {
	n := sizeOf("", messages)
	for _, t := range offer {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return int64((n + runesPerToken - 1) / runesPerToken)
}
