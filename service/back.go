package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/service/query"
)

// Turns are the turns of people in the conversation of a run, oldest first.
func (l *Local) Turns(ctx context.Context, run protocol.RunID) ([]api.Turn, error) {
	return query.Turns(ctx, l.Engine, run)
}

// Back takes turns of a conversation back, or the last going back, with the files of its workspace, and has the run driven in
// which it goes on. Where nothing was changed, since paths hold what nothing has recorded, the answer names them.
func (l *Local) Back(ctx context.Context, run protocol.RunID, b api.Back) (w api.WentBack, err error) {
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return w, err
	}
	recorded := st.Tracked != nil && st.Tracked.On
	g := engine.Going{Force: b.Force, By: caller(ctx), Each: b.Each}
	if b.Forth {
		g.Chat, g.To, err = l.forth(ctx, run, st.Info.Workspace)
	} else {
		var turns []api.Turn
		if turns, err = query.Turns(ctx, l.Engine, run); err != nil {
			return w, err
		}
		var turn api.Turn
		if turn, err = turnTo(turns, b.To); err != nil {
			return w, err
		}
		w.Step, w.Text = turn.Step, turn.Text
		g.Chat = protocol.ChatMoved{What: protocol.ChatUndo, At: turn.At, Messages: turn.Messages, Step: turn.Step}
		if b.To != "" {
			g.Chat.What = protocol.ChatRewind
		}
		if turn.Part {
			return w, protocol.ErrUsage.With("", "%s was asked within a sub-workflow, which cannot go back by itself; /fork STEP goes on behind a step, without the files", turn.Step)
		}
		if recorded {
			g.To, err = filesBefore(turn)
		}
	}
	if err != nil {
		return w, err
	}
	if !recorded {
		g.To, w.Left = protocol.Link{}, "this run does not record its files"
		if st.Tracked != nil && st.Tracked.Why != "" {
			w.Left += ": " + st.Tracked.Why
		}
	}
	l.moving.RLock()
	defer l.moving.RUnlock()
	v, err := l.Engine.GoBack(ctx, run, g)
	for tries := 0; errors.Is(err, protocol.ErrRunLive) && st.Status() != protocol.Running && tries < letGoTries; tries++ {
		select { // what has recorded its end holds the run for a moment longer
		case <-time.After(letGo):
		case <-ctx.Done():
			return w, ctx.Err()
		}
		v, err = l.Engine.GoBack(ctx, run, g)
	}
	if err != nil {
		return w, unended(noFiles(err, recorded))
	}
	w.Files, w.Run = *v, v.Next
	if w.Run == "" {
		return w, nil
	}
	return w, l.goOnIn(ctx, w.Run)
}

// noFiles says what helps where the files of the run were dropped.
func noFiles(err error, recorded bool) error {
	if recorded && errors.Is(err, protocol.ErrNotFound) {
		return fmt.Errorf("nothing was changed, and /fork STEP goes back without the files: %w", err)
	}
	return err
}

// unended says what helps where files are between both states.
func unended(err error) error {
	if _, open := errors.AsType[*engine.RestoreOpenError](err); open {
		return fmt.Errorf("the files have not come to their places yet: the next message, or wf chat, goes on with that, and wf restore --abort goes back: %w", err)
	}
	return err
}

// How often, and after how long each time, it is tried again to take hold of a run that waits or was suspended.
const (
	letGoTries = 100
	letGo      = 20 * time.Millisecond
)

// goOnIn has a run driven that a conversation went to, unless it was suspended: then it stays so.
func (l *Local) goOnIn(ctx context.Context, run protocol.RunID) error {
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return err
	}
	l.Note(ctx, l.Store, run)
	if l.Keeper != nil && st.Status() != protocol.Suspended && !st.Status().Final() {
		l.Keeper.Keep(run, engine.DriveOptions{By: caller(ctx)})
	}
	return nil
}

// turnTo is the turn that is taken back: the last one, or that of a step, or by its number from 1. To what an agent left goes what
// takes back the turn behind it.
func turnTo(turns []api.Turn, to string) (api.Turn, error) {
	last := len(turns) - 1
	if last < 0 {
		return api.Turn{}, protocol.ErrNotFound.With("", "nothing was said yet that could be taken back")
	}
	if to == "" {
		return turns[last], nil
	}
	for i := last; i >= 0; i-- {
		if turns[i].Step == to {
			return turns[i], nil
		}
		if slices.Contains(turns[i].Ended, to) {
			if i == last {
				return api.Turn{}, protocol.ErrUsage.With("", "nothing was said behind %s that could be taken back", to)
			}
			return turns[i+1], nil
		}
	}
	if n, err := strconv.Atoi(to); err == nil && n >= 1 && n <= len(turns) {
		return turns[n-1], nil
	}
	return api.Turn{}, protocol.ErrUnknownStep.With("/rewind lists the turns", "there is no turn %s", to)
}

// filesBefore is the tree from before a turn; zero where nothing has acted since.
func filesBefore(turn api.Turn) (l protocol.Link, err error) {
	switch {
	case turn.Failed != "":
		return l, protocol.ErrNotFound.With("", "what the files were before %s is not known: %s; /fork STEP goes back with the conversation alone", turn.Step, turn.Failed)
	case turn.Tree == "":
		return l, nil
	}
	return protocol.ParseLink(turn.Tree)
}

// forth finds what takes the last going back to a run back.
func (l *Local) forth(ctx context.Context, run protocol.RunID, dir string) (m protocol.ChatMoved, to protocol.Link, err error) {
	var back *protocol.FilesRestore
	err = l.Engine.Restorings(ctx, dir, func(_ protocol.Link, r *protocol.FilesRestore) bool {
		if r.Chat != nil && r.State == protocol.RestoreDone && r.Chat.Next == run && r.Chat.At > 0 {
			back = r
		}
		return back == nil
	})
	if err == nil && back == nil {
		err = protocol.ErrNotFound.With("", "nothing was taken back that could be redone")
	}
	if err != nil {
		return m, to, err
	}
	on, err := l.goneOn(ctx, run, back.Chat.At)
	if err == nil && on {
		err = protocol.ErrUsage.With("wf chat "+string(back.Run)+" goes on with what was taken back, without the files", "the conversation has gone on since: there is nothing to redo")
	}
	if err == nil {
		on, err = l.goneOn(ctx, back.Run, back.Chat.Seq)
	}
	if err == nil && on {
		err = protocol.ErrUsage.With("wf chat "+string(back.Run)+" goes on with it", "run %s, which was taken back, has gone on since", back.Run)
	}
	if err == nil && back.Undo != "" {
		to, err = protocol.ParseLink(back.Undo)
	}
	return protocol.ChatMoved{What: protocol.ChatRedo, Next: back.Run, Step: back.Chat.Step}, to, err
}

// goneOn reports whether something was said or done in a run behind an event.
func (l *Local) goneOn(ctx context.Context, run protocol.RunID, seq protocol.Seq) (bool, error) {
	for x, err := range l.Store.After(ctx, run, seq) {
		if err != nil {
			return false, err
		}
		if movesOn[x.Type] {
			return true, nil
		}
	}
	return false, nil
}

// movesOn are the events by which a conversation goes on: a question that is asked again is none.
var movesOn = map[protocol.EventType]bool{protocol.EvAnswered: true, protocol.EvMessage: true, protocol.EvPrompt: true, protocol.EvFilesAt: true, protocol.EvStepCompleted: true}

// SettleChat ends what another process had begun in the workspace of a run and not ended, and says in which run the conversation goes
// on: another one, where it went back or forth behind mark. An empty mark is now.
func (l *Local) SettleChat(ctx context.Context, run protocol.RunID, mark api.CID, each func(done, of int)) (s api.Settled, err error) {
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return s, err
	}
	dir := st.Info.Workspace
	if mark == "" {
		if mark, err = l.newestMark(ctx, dir); err != nil {
			return s, err
		}
	}
	if s.Files, err = l.SettleFiles(ctx, dir, each); err != nil {
		return s, err
	}
	if s.Mark, err = l.newestMark(ctx, dir); err != nil {
		return s, err
	}
	s.Run = run
	if s.Mark != mark {
		s.Run, err = l.whereTo(ctx, run, dir, mark)
	}
	return s, err
}

// SettleFiles ends what was begun in a directory, or above it, and not ended; nil is nothing.
func (l *Local) SettleFiles(ctx context.Context, dir string, each func(done, of int)) (*api.FilesRestored, error) {
	dir, err := l.Engine.RestoresIn(ctx, dir)
	if err != nil || dir == "" {
		return nil, err
	}
	v, err := l.Engine.GoOnRestoring(ctx, dir, false, each)
	switch {
	case errors.Is(err, protocol.ErrRunDeleted), errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrNotFound):
		if in, open := l.Engine.RestoresIn(ctx, dir); open != nil || in == "" {
			return nil, open // another process has ended it
		}
		v, err = l.Engine.GoOnRestoring(ctx, dir, true, each) // what it leads to is gone
	case errors.Is(err, protocol.ErrRunLive):
		return nil, protocol.ErrRestoreOpen.With("try again when it has ended", "another process is bringing the files of %s back just now", dir)
	}
	return v, unended(err)
}

// noMark is the mark of a workspace in which nothing was restored.
const noMark = "-"

func (l *Local) newestMark(ctx context.Context, dir string) (mark api.CID, err error) {
	err = l.Engine.Restorings(ctx, dir, func(at protocol.Link, _ *protocol.FilesRestore) bool {
		mark = at.String()
		return false
	})
	return cmp.Or(mark, noMark), err
}

// whereTo follows a conversation from a run through what was restored behind mark; an empty one is where the run was made.
func (l *Local) whereTo(ctx context.Context, run protocol.RunID, dir string, mark api.CID) (protocol.RunID, error) {
	var moves []*protocol.FilesRestore
	err := l.Engine.Restorings(ctx, dir, func(at protocol.Link, r *protocol.FilesRestore) bool {
		if at.String() == mark {
			return false
		}
		if r.Chat == nil || r.State != protocol.RestoreDone {
			return true
		}
		if mark == "" && r.Chat.Next == run && r.Chat.At > 0 {
			return false
		}
		copied := *r
		moves = append(moves, &copied)
		return true
	})
	for i := len(moves) - 1; i >= 0 && err == nil; i-- {
		m := moves[i]
		if m.Run != run {
			continue
		}
		var on bool
		if on, err = l.goneOn(ctx, run, m.Chat.Seq); err == nil && !on {
			run = m.Chat.Next
		}
	}
	return run, err
}
