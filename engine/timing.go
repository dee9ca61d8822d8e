package engine

import (
	"wf/cas"
	"wf/protocol"
)

// Timing says what the time of visits of agents and commands went into, waiting for people
// and timers left out. TTFEMS, ThinkingMS and ToolsMS add up to TotalMS, and the percentages
// to 100 where there is any time.
type Timing struct {
	TotalMS     int64 `json:"total_ms"`
	TTFEMS      int64 `json:"ttfe_ms"`     // until the model's first event, once for each visit
	ThinkingMS  int64 `json:"thinking_ms"` // the rest
	ToolsMS     int64 `json:"tools_ms"`    // in which a tool or command ran; side by side counts once
	ToolCalls   int   `json:"tool_calls"`
	TTFEPct     int64 `json:"ttfe_pct"`
	ThinkingPct int64 `json:"thinking_pct"`
	ToolsPct    int64 `json:"tools_pct"`
}

// stopwatch measures visits by the times of their events, in µs.
type stopwatch struct{ visits map[string]*lap }

type lap struct {
	action  protocol.Action
	from    int64 // of the stretch that is open, 0 is none
	last    int64 // newest event
	total   int64
	ttfe    int64
	told    bool // the first answer of a model came
	calls   int
	running int   // tools that run
	since   int64 // when the first of them began
	tools   int64
}

func (w *stopwatch) event(x protocol.Entry, action func(role string) protocol.Action) error {
	step := x.StepName()
	if step == "" {
		return w.whole(x)
	}
	l := w.visits[step]
	if l == nil {
		if x.Type != protocol.EvStepStarted {
			return nil
		}
		id, err := protocol.ParseStepID(step)
		if err != nil {
			return err
		}
		l = &lap{action: action(id.Role)}
		w.visits[step] = l
	}
	l.last = x.TS
	switch x.Type {
	case protocol.EvStepStarted:
		l.end(x.TS)
		l.from = x.TS
		if l.action == protocol.ActRun {
			l.begin(x.TS)
			l.calls++
		}
	case protocol.EvUsage:
		u, err := cas.DecodeData[protocol.Usage](&x.Event)
		if err != nil {
			return err
		}
		if !l.told && u.Kind == protocol.UsageTurn {
			l.told, l.ttfe = true, u.TTFE*1000
		}
	case protocol.EvToolCall:
		l.begin(x.TS)
		l.calls++
	case protocol.EvToolResult:
		l.finish(x.TS)
	case protocol.EvStepCompleted, protocol.EvWaiting, protocol.EvAttemptFailed, protocol.EvSuspended:
		l.end(x.TS)
	}
	return nil
}

// whole ends every stretch where the run itself stops.
func (w *stopwatch) whole(x protocol.Entry) error {
	switch x.Type {
	case protocol.EvSuspended, protocol.EvCancelled, protocol.EvDone, protocol.EvForked:
		for _, l := range w.visits {
			l.end(x.TS)
		}
	case protocol.EvResumed: // the time between counts for nobody
		for _, l := range w.visits {
			l.end(l.last)
		}
	}
	return nil
}

func (l *lap) begin(ts int64) {
	if l.running == 0 {
		l.since = ts
	}
	l.running++
}

func (l *lap) finish(ts int64) {
	if l.running == 0 {
		return
	}
	if l.running--; l.running == 0 {
		l.tools += max(0, ts-l.since)
	}
}

func (l *lap) end(ts int64) {
	if l.from == 0 {
		return
	}
	if l.running > 0 {
		l.running = 1
		l.finish(ts)
	}
	l.total += max(0, ts-l.from)
	l.from = 0
}

// timing sums up; what is still open counts up to its newest event.
func (w *stopwatch) timing() Timing {
	var total, ttfe, tools int64
	var t Timing
	for _, l := range w.visits {
		if !actsOnFiles(l.action) {
			continue
		}
		open := *l
		open.end(open.last)
		tools += min(open.tools, open.total)
		ttfe += min(open.ttfe, open.total-min(open.tools, open.total))
		total += open.total
		t.ToolCalls += open.calls
	}
	t.TotalMS, t.TTFEMS, t.ToolsMS = total/1000, ttfe/1000, tools/1000
	t.ThinkingMS = t.TotalMS - t.TTFEMS - t.ToolsMS
	if t.TotalMS > 0 {
		t.TTFEPct = (t.TTFEMS*100 + t.TotalMS/2) / t.TotalMS
		t.ToolsPct = min((t.ToolsMS*100+t.TotalMS/2)/t.TotalMS, 100-t.TTFEPct)
		t.ThinkingPct = 100 - t.TTFEPct - t.ToolsPct
	}
	return t
}
