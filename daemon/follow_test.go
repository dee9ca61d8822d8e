package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
	"wf/service"
	"wf/store"
)

// A screen follows a run without end: it sees what is said before it is recorded while a process drives the run,
// and what the store has, and whether a process drives the run, before and after that.
func TestAScreenFollowsARunWhateverDrivesIt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	s, first := liveRun(t, filepath.Join(dir, "store"))
	m := &moves{of: map[protocol.RunID]move{}}
	f := &Foreground{Local: &service.Local{Store: s, Engine: &engine.Engine{Store: s}, Keeper: m}, moves: m}

	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	came, ended := make(chan api.Update, 64), make(chan error, 1)
	go func() {
		ended <- f.Follow(ctx, "R1", api.Following{Until: api.Never}, func(u api.Update) error {
			came <- u
			return nil
		})
	}()
	comes := func(what string, is func(api.Update) bool) {
		t.Helper()
		for {
			select {
			case u := <-came:
				if is(u) {
					return
				}
			case err := <-ended:
				t.Fatalf("%s never comes: %v", what, err)
			}
		}
	}
	event := func(seq protocol.Seq) func(api.Update) bool {
		return func(u api.Update) bool { return u.Entry != nil && u.Entry.Seq == seq && u.Data != nil }
	}
	driven := func(is bool) func(api.Update) bool {
		return func(u api.Update) bool { return u.Driven != nil && *u.Driven == is }
	}
	whole := func(u api.Update) bool { return u.Whole }

	comes("the event of the store", event(1))
	comes("the end of what is recorded", whole)
	comes("that no process drives it", driven(false))

	live := NewLiveSockets(s)
	defer live.Close()
	live.Notice(first)
	comes("the process that drives it", driven(true))
	comes("the end of what is recorded", whole)
	live.Notice(api.Update{Run: "R1", Step: "a#1", Data: protocol.Delta{Kind: "text", Text: "half a sen"}})
	comes("what is said before it is recorded", func(u api.Update) bool {
		d, said := u.Data.(protocol.Delta)
		return said && d.Text == "half a sen" && u.Step == "a#1"
	})
	live.End("R1")

	j, err := s.Journal(t.Context(), "R1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), 2, []cas.Draft{{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText("half a sentence")}}}, nil); err != nil {
		t.Fatal(err)
	}
	comes("what another process wrote", event(2))
	comes("that no process drives it", driven(false))
	leave()
	for {
		select {
		case <-came:
			continue
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it ends with %v", err)
			}
		}
		return
	}
}

// Who follows a run goes on when the database is back, however long it was away: a client that ends with it has missed the rest.
func TestAScreenWaitsForItsDatabase(t *testing.T) {
	srv, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := srv.Database(t.Context())
	if err == nil {
		_, err = pgstore.Init(t.Context(), dsn, pgstore.Roles{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), dsn, store.Options{State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	say := func(text string) {
		t.Helper()
		j, err := s.Journal(cas.Patient(t.Context(), t.Context()), "R1")
		if err == nil {
			_, err = j.Append(t.Context(), 1, []cas.Draft{{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(text)}}}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	say("before")
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	came, ended := make(chan string, 64), make(chan error, 1)
	go func() {
		ended <- newTrail(&service.Local{Store: s, Engine: &engine.Engine{Store: s}, Keeper: &moves{}}, "R1", api.Following{Until: api.Never}, func(u api.Update) error {
			if said, ok := u.Data.(protocol.TextSaid); ok {
				came <- said.Content.S
			}
			return nil
		}).follow(ctx)
	}()
	comes := func(want string) {
		t.Helper()
		select {
		case got := <-came:
			if got != want {
				t.Errorf("%q comes, want %q", got, want)
			}
		case err := <-ended:
			t.Fatalf("it ends before %q: %v", want, err)
		}
	}
	comes("before")
	if err := srv.Kill(); err != nil {
		t.Fatal(err)
	}
	select { // longer than some polls
	case err := <-ended:
		t.Fatalf("it ends with its database: %v", err)
	case <-time.After(2 * time.Second):
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	say("behind")
	comes("behind")
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
