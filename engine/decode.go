package engine

import (
	"context"

	"wf/cas"
	"wf/protocol"
)

// decoders read the data of each event type that this binary knows.
var decoders = map[protocol.EventType]func(*protocol.Event) (protocol.Data, error){
	protocol.EvRunStarted:      as[protocol.RunStarted],
	protocol.EvStepStarted:     as[protocol.StepStarted],
	protocol.EvPrompt:          as[protocol.PromptSent],
	protocol.EvThinking:        as[protocol.Thinking],
	protocol.EvText:            as[protocol.TextSaid],
	protocol.EvToolCall:        as[protocol.ToolCall],
	protocol.EvToolResult:      as[protocol.ToolResult],
	protocol.EvUsage:           as[protocol.Usage],
	protocol.EvAttemptFailed:   as[protocol.AttemptFailed],
	protocol.EvStepCompleted:   as[protocol.StepCompleted],
	protocol.EvWaiting:         as[protocol.WaitingFor],
	protocol.EvAnswered:        as[protocol.Answered],
	protocol.EvMessage:         as[protocol.MessageIn],
	protocol.EvTimerFired:      as[protocol.TimerFired],
	protocol.EvApproval:        as[protocol.Approval],
	protocol.EvSandbox:         as[protocol.SandboxTier],
	protocol.EvSuspended:       as[protocol.SuspendedBy],
	protocol.EvResumed:         as[protocol.ResumedBy],
	protocol.EvLimitReached:    as[protocol.LimitReached],
	protocol.EvLimitChanged:    as[protocol.LimitChanged],
	protocol.EvModelFallback:   as[protocol.ModelFallback],
	protocol.EvCompacted:       as[protocol.Compacted],
	protocol.EvTaskStarted:     as[protocol.TaskStarted],
	protocol.EvForked:          as[protocol.Forked],
	protocol.EvCompactionAsked: as[protocol.CompactionAsked],

	protocol.EvTaskStateUpdated: as[protocol.TaskStateUpdated],
	protocol.EvTaskWaiting:      as[protocol.TaskWaitingOn],
	protocol.EvTaskCompleted:    as[protocol.TaskDone],
	protocol.EvMemoryChanged:    as[protocol.MemoryChanged],

	protocol.EvCancelled: as[protocol.CancelledBy],
	protocol.EvDone:      as[protocol.Finished],
}

func as[T protocol.Data](e *protocol.Event) (protocol.Data, error) { return cas.DecodeData[T](e) }

// Decode reads the data of an event; nil for a type that this binary does not know.
func Decode(e *protocol.Event) (protocol.Data, error) {
	if d := decoders[e.Type]; d != nil {
		return d(e)
	}
	return nil, nil
}

// moves are the event types that move a State; the others are not decoded when folding.
var moves = map[protocol.EventType]bool{protocol.EvRunStarted: true, protocol.EvStepStarted: true, protocol.EvStepCompleted: true,
	protocol.EvAttemptFailed: true, protocol.EvWaiting: true, protocol.EvMessage: true, protocol.EvUsage: true, protocol.EvSuspended: true,
	protocol.EvCompacted: true, protocol.EvCompactionAsked: true, protocol.EvCancelled: true, protocol.EvLimitChanged: true, protocol.EvForked: true, protocol.EvDone: true}

func decodeFolded(e *protocol.Event) (protocol.Data, error) {
	if !moves[e.Type] {
		return nil, nil
	}
	return Decode(e)
}

// Notice makes what Watch is told of a stored event, long texts in place.
func (e *Engine) Notice(ctx context.Context, run protocol.RunID, x protocol.Entry) (Notice, error) {
	return ReadNotice(e.reader(ctx), run, x)
}

// ReadNotice is Notice for an event of a run that lies elsewhere, whose long texts read finds.
func ReadNotice(read Reader, run protocol.RunID, x protocol.Entry) (Notice, error) {
	whole := x.Event
	if err := inline(read, &whole); err != nil {
		return Notice{}, err
	}
	d, err := Decode(&whole)
	return Notice{Run: run, Entry: &x, Data: d, Step: x.StepName()}, err
}

// tellStored tells the watcher of events that another process wrote.
func (e *Engine) tellStored(ctx context.Context, run protocol.RunID, entries []protocol.Entry) error {
	if e.Watch == nil {
		return nil
	}
	for _, x := range entries {
		n, err := e.Notice(ctx, run, x)
		if err != nil {
			return err
		}
		e.Watch(n)
	}
	return nil
}
