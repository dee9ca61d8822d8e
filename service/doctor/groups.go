package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
	"wf/store"
)

// checkGroups tells of slots of concurrency groups, and of places in their queues, that belong to runs with which no process
// goes on. There is nothing to tell of a store without groups.
func checkGroups(ctx context.Context, u *compose.Setup) []api.Checkup {
	dir, _, err := u.StoreName()
	if err != nil || !compose.HoldsStore(dir) {
		return nil // the checkup of the store says so
	}
	c := api.Checkup{Name: "groups", State: "ok"}
	var left []string
	var resume []protocol.RunID
	none := false
	err = u.WithStore(ctx, func(s store.Store) error {
		e := &engine.Engine{Store: s}
		groups, err := e.Groups(ctx)
		none = len(groups) == 0
		for _, g := range groups {
			if err != nil {
				return err
			}
			var text []string
			text, resume, err = leftIn(ctx, e, g, resume)
			left = append(left, text...)
		}
		c.Text = protocol.Plural(len(groups), "concurrency group") + " in use"
		return err
	})
	switch {
	case err != nil:
		return []api.Checkup{bad(c, err)}
	case none:
		return nil
	case len(left) > 0:
		c.State, c.Text = "note", strings.Join(left, "; ")
		c.Fix = fmt.Sprintf("wf resume %s goes on with it, wf cancel %s frees its place; wf serve goes on with all that were cut off or are queued", resume[0], resume[0])
	}
	return []api.Checkup{c}
}

// mostLeft is how many are named of one group.
const mostLeft = 5

// leftIn are what of a group belongs to runs with which no process goes on.
func leftIn(ctx context.Context, e *engine.Engine, g protocol.Group, resume []protocol.RunID) ([]string, []protocol.RunID, error) {
	var text []string
	note := func(run protocol.RunID, what string) error {
		s, err := e.State(ctx, run)
		if errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrRunDeleted) {
			return nil // what waits takes the place of it
		}
		if err != nil {
			return err
		}
		idle := e.Driving(ctx, run, s).Idle != ""
		if status := s.Status(); idle || status == protocol.Suspended {
			word := string(status)
			if idle {
				word += ", and no process goes on with it"
			}
			text, resume = append(text, fmt.Sprintf("%s %s of the group %s: it is %s", run, what, g.Name, word)), append(resume, run)
		}
		return nil
	}
	for _, s := range g.Slots {
		if err := note(s.Root, "holds a slot"); err != nil {
			return nil, resume, err
		}
	}
	for _, q := range g.Queue {
		if q.Step == "" && !slices.Contains(resume, q.Root) {
			if err := note(q.Root, "waits for a slot"); err != nil {
				return nil, resume, err
			}
		}
	}
	if n := len(text); n > mostLeft {
		text = append(text[:mostLeft], fmt.Sprintf("and %d more", n-mostLeft))
	}
	return text, resume, nil
}
