package query

import (
	"bytes"
	"context"
	"wf/engine"
	"wf/engine/layout"
	"wf/engine/rules"
	"wf/protocol"
)

// Graph draws the workflow of a run with the path it took.
func Graph(ctx context.Context, e *engine.Engine, run protocol.RunID) ([]byte, error) {
	st, err := e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = layout.Of(st.Program().Workflow).SVG(&out, pathTaken(st))
	return out.Bytes(), err
}

// pathTaken is what a run did, on the picture of its workflow. Where a role was entered
// several times its newest visit gives the status.
func pathTaken(st *rules.State) layout.Overlay {
	o := layout.Overlay{Visits: map[string]int{}, Taken: map[protocol.Way]int{}, Status: map[string]string{}}
	for _, e := range st.Arrivals() {
		o.Taken[protocol.Way{Edge: e.Edge, To: e.At, Limit: e.Via == protocol.ViaLimit}]++
	}
	for _, w := range st.Ways() {
		o.Taken[w.Way] = w.Times
	}
	for _, r := range st.Roles() {
		switch r.Status {
		case "skipped":
			r.Status = "ok"
		case "retrying":
			r.Status = "running"
		case "parked":
			r.Status = "failed"
		}
		o.Status[r.Role], o.Visits[r.Role] = r.Status, r.Visits
	}
	return o
}
