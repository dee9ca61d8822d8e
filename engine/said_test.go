package engine_test

import (
	"context"
	"testing"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// ahead says something behind an event that it does not wait for.
type ahead struct{ rounds int }

func (h ahead) Perform(ctx context.Context, _ protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	for range h.rounds {
		if err := emit(roles.Soon(ctx), protocol.TextSaid{Content: protocol.NewText("whole")}); err != nil {
			return protocol.Conclusion{}, err
		}
		if err := emit(ctx, protocol.Delta{Kind: "text", Text: "piece"}); err != nil {
			return protocol.Conclusion{}, err
		}
	}
	return protocol.Conclusion{Data: protocol.JSON(`{"exit_code":0}`)}, nil
}

// A watcher hears live output behind the events that came before it, though these are on disk
// only later: else a piece of the next answer would seem to be one of the answer before.
func TestLiveOutputIsToldBehindTheEventsBeforeIt(t *testing.T) {
	b := newBench(t)
	const rounds = 50
	b.e.Performers[protocol.ActRun] = ahead{rounds}
	events, pieces := 0, 0
	b.e.Watch = func(n api.Update) {
		switch d := n.Data.(type) {
		case protocol.TextSaid:
			events++
		case protocol.Delta:
			if pieces++; events != pieces {
				t.Errorf("piece %d (%s) is told after %d events", pieces, d.Text, events)
			}
		}
	}
	p := b.load("wf: 1\nname: talk\nroles:\n  a: {run: talk, timeout: 1m}\n")
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
		t.Fatal(err)
	}
	if events != rounds || pieces != rounds {
		t.Errorf("%d events and %d pieces were told, want %d of each", events, pieces, rounds)
	}
}
