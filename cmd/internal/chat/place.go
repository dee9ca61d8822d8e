package chat

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"wf/api"
	"wf/protocol"
)

// A Place is where a run is. Service, Follower and Me are always set.
type Place struct {
	Service  api.Service
	Follower api.Follower
	Me       string // by which name the person is recorded
	Near     Near   // nil where the store is elsewhere
	// Tasks are all tasks of a run, oldest first.
	Tasks func(ctx context.Context, run protocol.RunID) ([]TaskPage, error)
	// Word is what there is to say at the beginning, "" for nothing.
	Word string
	// Files are those of a workspace; nil where they are elsewhere.
	Files func(dir string) Files
	// Models are the models that are known where the runs are, with what is known of each; nil knows none.
	Models func(ctx context.Context) ([]Row, error)
	// TakeUp has another run driven, and says in which the conversation goes on, and what there is to say; nil where
	// another process drives the runs.
	TakeUp func(ctx context.Context, run protocol.RunID) (now protocol.RunID, word string, err error)
	// Drives reports whether this process drives a run; nil where the Service reaches the one that does.
	Drives func(protocol.RunID) bool
	// Dump writes the memory of a scope to a file, which it makes where it is not there.
	Dump func(ctx context.Context, scope, path string) error
}

// Near is what only the process that has the store can do.
type Near interface {
	// Agent is the first agent of a run.
	Agent(ctx context.Context, run protocol.RunID) (api.Agent, error)
	// Again begins the workflow of a run anew, and has it driven. The old run's memories are taken back.
	Again(ctx context.Context, run protocol.RunID) (protocol.RunID, error)
	// Turns are the turns of people in the conversation of a run, oldest first.
	Turns(ctx context.Context, run protocol.RunID) ([]api.Turn, error)
	// Back takes turns back, or forth again, with the files of the workspace.
	Back(ctx context.Context, run protocol.RunID, b api.Back) (api.WentBack, error)
	// SettleChat ends a way back that another process began in the workspace of a run and did not end, and finds the run in which
	// the conversation goes on, by what happened behind mark; "" is now.
	SettleChat(ctx context.Context, run protocol.RunID, mark api.CID, each func(done, of int)) (api.Settled, error)
}

// session is a run of a Place. It is safe for concurrent use.
type session struct {
	at Place

	mu    sync.Mutex
	info  Info
	files Files   // of its workspace; nil where they are elsewhere
	mark  api.CID // of the newest way back in its workspace that the session knows
}

// timeout bounds what is asked of a session at a time.
const timeout = 30 * time.Second

// Open is a session with a run.
func Open(ctx context.Context, at Place, run protocol.RunID) (Session, error) {
	s := &session{at: at}
	return s, s.goTo(ctx, run)
}

// goTo makes a run that of the session.
func (s *session) goTo(ctx context.Context, run protocol.RunID) error {
	var mark api.CID
	if s.at.Near != nil {
		now, err := s.at.Near.SettleChat(ctx, run, "", nil)
		if err != nil {
			return err
		}
		run, mark = now.Run, now.Mark
	}
	v, err := s.at.Service.Run(ctx, run, api.Window{Limit: 1})
	if err != nil {
		return err
	}
	var agent api.Agent
	if s.at.Near != nil {
		if agent, err = s.at.Near.Agent(ctx, run); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = mark
	s.info = Info{Word: s.at.Word, Run: run, Title: v.Info.Title, Model: agent.Model, Window: agent.Window, Dir: v.Info.Workspace, Me: s.at.Me}
	if s.files = nil; s.at.Files != nil && v.Info.Workspace != "" && v.Info.Machine == "" {
		s.files = s.at.Files(v.Info.Workspace)
	}
	return nil
}

func (s *session) Info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

func (s *session) run() protocol.RunID { return s.Info().Run }

func (s *session) Follow(ctx context.Context, from protocol.Seq, on func(api.Update)) error {
	run := s.run()
	if s.at.Near == nil {
		w := &watch{service: s.at.Service, run: run, on: on}
		w.goesOn.Store(true)
		on = w.update
		ctx, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		all.Go(func() { w.look(ctx) })
		defer all.Wait()
		defer stop()
	}
	return s.at.Follower.Follow(ctx, run, api.Following{From: from, Until: api.Never}, func(u api.Update) error {
		on(u)
		return nil
	})
}

// A watch asks a server whether a process drives a run that does not move: a server that does not drive it itself tells that to those that
// follow it when they connect, and not again.
type watch struct {
	service api.Service
	run     protocol.RunID
	on      func(api.Update)
	goesOn  atomic.Bool  // the run, by its last event
	moves   atomic.Int64 // updates so far
}

// quietAfter is how long a run does not move before it is looked at, and again after that.
const quietAfter = 5 * time.Second

func (w *watch) update(u api.Update) {
	w.moves.Add(1)
	if u.Entry != nil {
		switch u.Entry.Type {
		case protocol.EvWaiting, protocol.EvSuspended, protocol.EvDone, protocol.EvCancelled:
			w.goesOn.Store(false)
		default:
			w.goesOn.Store(true)
		}
	}
	w.on(u)
}

func (w *watch) look(ctx context.Context) {
	tick := time.NewTicker(quietAfter)
	defer tick.Stop()
	for seen := w.moves.Load(); ; seen = w.moves.Load() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !w.goesOn.Load() || w.moves.Load() != seen {
			continue
		}
		v, err := w.service.Run(ctx, w.run, api.Window{Limit: 1})
		switch {
		case err != nil || w.moves.Load() != seen: // the follower tells of a connection that is gone
		case v.Status != protocol.Running:
			w.goesOn.Store(false)
		case v.Driven != nil:
			w.on(api.Update{Run: w.run, Driven: v.Driven})
		}
	}
}

// Page reads the n events before a seq.
func (s *session) Page(ctx context.Context, before protocol.Seq, n int) (out []api.Update, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	from := max(0, before-1-protocol.Seq(n))
	if before-1 <= from {
		return nil, nil
	}
	err = s.at.Follower.Follow(ctx, s.run(), api.Following{From: from, To: before - 1}, func(u api.Update) error {
		if u.Entry != nil {
			out = append(out, u)
		}
		return nil
	})
	return out, err
}

func (s *session) Tip(ctx context.Context) (protocol.Seq, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	v, err := s.at.Service.Run(ctx, s.run(), api.Window{Limit: 1})
	if err != nil {
		return 0, err
	}
	return v.Seq, nil
}

// settle goes to the run in which the conversation goes on, where that is another one by now: then it is a *MovedError.
func (s *session) settle(ctx context.Context) error {
	if s.at.Near == nil {
		return nil
	}
	s.mu.Lock()
	run, mark := s.info.Run, s.mark
	s.mu.Unlock()
	now, err := s.at.Near.SettleChat(ctx, run, mark, nil)
	if err != nil {
		return err
	}
	if now.Run != run {
		if err := s.goTo(ctx, now.Run); err != nil {
			return err
		}
		return &MovedError{"the conversation went to run " + string(now.Run) + " meanwhile, with the files: look before you send it"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = now.Mark
	return nil
}

func (s *session) Say(ctx context.Context, text string) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	return s.at.Service.Send(ctx, s.run(), api.Message{Source: s.at.Me, Text: text})
}

func (s *session) Answer(ctx context.Context, x api.Answer) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	x.Source = "chat"
	_, err := s.at.Service.Answer(ctx, s.run(), x)
	return err
}

func (s *session) Stops() bool { return s.at.Drives == nil || s.at.Drives(s.run()) }

// workspace is where the files of the run are; nil where they are elsewhere.
func (s *session) workspace() Files {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files
}

func (s *session) Paths(ctx context.Context) ([]string, bool, error) {
	if files := s.workspace(); files != nil {
		return files.Paths(ctx)
	}
	return nil, false, ErrElsewhere
}

func (s *session) Attached(_ context.Context, line string, room int) (string, error) {
	if files := s.workspace(); files != nil {
		return attached(files, line, room)
	}
	return "", nil
}

func (s *session) Tasks(ctx context.Context) ([]TaskPage, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.at.Tasks(ctx, s.run())
}
