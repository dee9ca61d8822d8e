package daemon

import (
	"context"
	"log/slog"
	"time"

	"wf/api"
	"wf/protocol"
)

// A runLog writes a line for what this process did to a run, with the run, and the step where it is of one, as
// attributes. What people, models and commands said is in no line: codes and names alone.
type runLog struct{ *slog.Logger }

func (l runLog) notice(u api.Update) {
	if !u.Wrote {
		return
	}
	level, text, more := logged(u)
	if text == "" || !l.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{slog.String("run", string(u.Run))}
	if u.Step != "" {
		attrs = append(attrs, slog.String("step", u.Step))
	}
	l.LogAttrs(context.Background(), level, text, append(attrs, more...)...)
}

// logged is the line for an event; "" is none.
func logged(u api.Update) (level slog.Level, text string, more []slog.Attr) {
	switch d := u.Data.(type) {
	case protocol.RunStarted:
		return slog.LevelInfo, "the run begins", []slog.Attr{slog.String("workflow", u.Workflow.Name), slog.Bool("child", u.Parent != "")}
	case protocol.Finished:
		level = slog.LevelInfo
		if d.Status != protocol.Done {
			level = slog.LevelWarn
		}
		return level, "the run ended", []slog.Attr{slog.String("workflow", u.Workflow.Name), slog.String("status", string(d.Status))}
	case protocol.Closing:
		return slog.LevelInfo, "the run closes", []slog.Attr{slog.String("workflow", u.Workflow.Name), slog.String("status", string(d.Status))}
	case protocol.ClosingSkipped:
		return slog.LevelWarn, "what is left of closing is skipped", []slog.Attr{slog.String("workflow", u.Workflow.Name), slog.String("code", d.Code), slog.String("why", d.Reason)}
	case protocol.CancelledBy:
		return slog.LevelInfo, "the run was cancelled", []slog.Attr{slog.String("workflow", u.Workflow.Name), slog.String("by", d.By)}
	case protocol.SuspendedBy:
		level, text = slog.LevelWarn, "the run is suspended"
		if d.Reason == protocol.ByInterrupt {
			level = slog.LevelInfo
		}
		if u.Step != "" {
			text = "the step is suspended"
		}
		return level, text, []slog.Attr{slog.String("reason", string(d.Reason)), slog.String("code", d.Code)}
	case protocol.ResumedBy:
		return slog.LevelInfo, "the run goes on", []slog.Attr{slog.String("by", d.By)}
	case protocol.AttemptFailed:
		more = []slog.Attr{slog.Int("attempt", d.Attempt), slog.String("code", d.Error.Code), slog.String("phase", d.Error.Phase)}
		if d.RetryAt > 0 {
			more = append(more, slog.Time("retry_at", time.UnixMicro(d.RetryAt).UTC()))
		}
		return slog.LevelWarn, "an attempt failed", more
	case protocol.WaitingFor:
		return slog.LevelInfo, "the step waits", []slog.Attr{slog.String("for", string(d.Kind))}
	case protocol.Answered:
		return slog.LevelInfo, "the step was answered", []slog.Attr{slog.String("by", d.By), slog.String("source", d.Source)}
	case protocol.LimitReached:
		return slog.LevelWarn, "a limit was reached", []slog.Attr{slog.String("limit", d.Limit), slog.Int64("max", d.Max)}
	case protocol.ModelFallback:
		return slog.LevelWarn, "another model answered", []slog.Attr{slog.String("from", d.From), slog.String("to", d.To)}
	case protocol.StepStarted:
		return slog.LevelDebug, "the step begins", []slog.Attr{slog.Int("attempt", d.Attempt)}
	case protocol.StepCompleted:
		return slog.LevelDebug, "the step ended", []slog.Attr{slog.String("status", string(d.Status)), slog.Int64("ms", d.MS)}
	case protocol.Usage:
		return slog.LevelDebug, "a model was called", []slog.Attr{slog.String("model", d.Model), slog.Int64("ms", d.TotalMS), slog.String("stop", d.Stop)}
	case protocol.ToolCall:
		return slog.LevelDebug, "a tool is called", []slog.Attr{slog.String("tool", d.Name)}
	}
	return 0, "", nil
}
