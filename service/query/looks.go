package query

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// Looks are what a run recorded of the files of its workspace, with who may have changed what differs from one to the next.
func Looks(ctx context.Context, e *engine.Engine, run protocol.RunID) (*api.Looks, error) {
	s, err := e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	out := &api.Looks{Schema: "wf.looks/v1", Run: run, Workspace: s.Info.Workspace, Looks: []api.Look{}}
	w := looker{out: out, acts: map[string]int{}, subflows: subflowsOf(s), calls: map[string]string{}, own: ownLooker{roles: map[string]bool{}, at: map[string]int{}, first: map[string]protocol.Seq{}}}
	for i := range s.Program().Workflow.Roles {
		if r := &s.Program().Workflow.Roles[i]; r.Action == protocol.ActMerge || r.Workspace != nil {
			w.own.roles[r.Name] = true
		}
	}
	for x, err := range e.Store.After(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		if err := w.event(&x); err != nil {
			return nil, err
		}
	}
	return out, w.own.visits(ctx, e, out)
}

// A looker goes through the events of a run.
type looker struct {
	out      *api.Looks
	acts     map[string]int    // the visits that act, each with the number of looks when it began
	late     []string          // those whose end was not looked at: they may have written until the next look
	subflows map[string]bool   // roles
	calls    map[string]string // tools by call
	own      ownLooker
}

// stop has a visit act no more whose end was not looked at.
func (w *looker) stop(step string) {
	if _, acts := w.acts[step]; acts {
		delete(w.acts, step)
		w.late = append(w.late, step, api.Outside)
	}
}

func (w *looker) event(x *protocol.Entry) error {
	step := x.StepName()
	switch x.Type {
	case protocol.EvFilesTracked:
		d, err := cas.DecodeData[protocol.FilesTracked](&x.Event)
		if err != nil {
			return err
		}
		w.out.Recorded, w.out.Why = d.On, d.Why
		if d.On {
			w.out.Looks = append(w.out.Looks, api.Look{Seq: x.Seq, Time: Stamp(x.TS), Phase: api.LookStart, Tree: d.Tree, By: []string{}})
		}
	case protocol.EvFilesAt:
		d, err := cas.DecodeData[protocol.FilesAt](&x.Event)
		if err != nil {
			return err
		}
		w.look(x, step, d)
	case protocol.EvStepStarted:
		w.stop(step) // what was cut off begins again
		if id, err := protocol.ParseStepID(step); err == nil && w.subflows[id.Role] {
			w.acts[step] = len(w.out.Looks)
		}
	case protocol.EvOwnCopy:
		d, err := cas.DecodeData[protocol.OwnCopy](&x.Event)
		if err != nil {
			return err
		}
		w.own.visit(w.out, x, step).Base = d.Base.String()
	case protocol.EvStepCompleted, protocol.EvAttemptFailed:
		w.stop(step)
		if id, err := protocol.ParseStepID(step); x.Type == protocol.EvStepCompleted && err == nil && w.own.may(id) {
			return w.own.ended(x, step)
		}
	case protocol.EvSuspended, protocol.EvCancelled, protocol.EvClosing, protocol.EvForked, protocol.EvResumed:
		if step != "" {
			w.stop(step)
			return nil
		}
		for _, step := range slices.Sorted(maps.Keys(w.acts)) {
			w.stop(step)
		}
	case protocol.EvToolCall:
		d, err := cas.DecodeData[protocol.ToolCall](&x.Event)
		if err != nil {
			return err
		}
		w.calls[step+" "+d.Call] = d.Name
	}
	return nil
}

// look notes a look.
func (w *looker) look(x *protocol.Entry, step string, d protocol.FilesAt) {
	if d.Phase == protocol.FilesBefore {
		w.stop(step)
	}
	by := append(slices.Collect(maps.Keys(w.acts)), w.late...)
	if len(by) == 0 {
		by = []string{api.Outside}
	}
	slices.Sort(by)
	w.late = nil
	w.out.Looks = append(w.out.Looks, api.Look{Seq: x.Seq, Time: Stamp(x.TS), Step: step, Attempt: d.Attempt, Phase: d.Phase, Call: d.Call, Tool: w.calls[step+" "+d.Call],
		Tree: d.Tree, Failed: d.Why, By: slices.Compact(by)})
	from, acts := w.acts[step]
	switch {
	case d.Phase == protocol.FilesBefore:
		w.acts[step] = len(w.out.Looks)
	case d.Phase == protocol.FilesAfter && acts:
		delete(w.acts, step)
		for i := from; i < len(w.out.Looks) && len(d.Overlaps) > 0; i++ {
			l := &w.out.Looks[i]
			by := slices.DeleteFunc(append(slices.Clone(l.By), d.Overlaps...), func(s string) bool { return s == "" })
			if more := d.OverlapsCount - len(d.Overlaps); more > 0 && !slices.ContainsFunc(by, others) {
				by = append(by, strconv.Itoa(more)+moreOthers)
			}
			slices.SortFunc(by, strings.Compare)
			l.By = slices.Compact(by)
		}
	}
}

// moreOthers is behind the number of visits that are not named in Look.By.
const moreOthers = " others"

func others(s string) bool { return strings.HasSuffix(s, moreOthers) }
