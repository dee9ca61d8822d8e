package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/hub/guard"
	"wf/hub/lists"
	"wf/protocol"
	"wf/store"
)

// write does one thing to a run of a store.
func write(s store.Store, deed string, run protocol.RunID) error {
	ctx := context.Background()
	switch deed {
	case "delete":
		h, err := s.Head(ctx, protocol.RunHead(run))
		if err != nil {
			return err
		}
		d, err := cas.Bury(h, protocol.Tombstone{At: time.Now().UnixMicro(), By: "ada"})
		if err != nil {
			return err
		}
		return s.Commit(ctx, cas.Batch{Deletes: []cas.Deletion{d}})
	case "tell": // a sink of notifications
		e, err := cas.Encode(protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Seq: 1, TS: time.Now().UnixMicro(), Type: protocol.EvText, Data: []byte{0xa0}})
		if err != nil {
			return err
		}
		name := protocol.NotifyHead("of " + string(run))
		return s.Commit(ctx, cas.Batch{Blocks: []cas.Block{e}, Moves: []cas.Move{{Name: name, New: e.Link, Events: []cas.EventRef{{Seq: 1, CID: e.Link}}}}})
	case "table":
		return s.Commit(ctx, cas.Batch{Derived: cas.PutTable(cas.StoredTable{ID: run, At: time.Now().UnixMicro(), Head: []byte(`{"title":"t","complete":true}`), Data: []byte(`{}`)})})
	}
	j, err := s.Journal(ctx, run)
	if err == nil {
		_, err = j.Append(ctx, time.Now().UnixMicro(), []cas.Draft{{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(deed)}}}, nil)
	}
	return err
}

// TestWriteAsAnotherProcess is that other process, and no test.
func TestWriteAsAnotherProcess(t *testing.T) {
	dir, deed := os.Getenv("WF_TEST_STORE"), os.Getenv("WF_TEST_DEED")
	if dir == "" {
		t.Skip("it is started by TestListsAreTold")
	}
	s, err := store.Open(t.Context(), dir, store.Options{MustExist: true, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(s, deed, protocol.RunID(os.Getenv("WF_TEST_RUN"))), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// listening subscribes to lists of a board.
func listening(t testing.TB, b *lists.Board, names ...protocol.List) <-chan protocol.Frame {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	frames, ended := make(chan protocol.Frame), make(chan error, 1)
	go func() {
		ended <- b.Serve(ctx, protocol.Request{Lists: names}, func(f *protocol.Frame) error {
			select {
			case frames <- *f:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return frames
}

// told waits until something was told about each of the lists; a run must be named, or everything be meant.
func told(t testing.TB, frames <-chan protocol.Frame, run protocol.RunID, names ...protocol.List) {
	t.Helper()
	late := time.After(time.Minute)
	names = slices.Clone(names)
	for len(names) > 0 {
		select {
		case f := <-frames:
			if f.All || slices.Contains(f.Runs, run) {
				names = slices.DeleteFunc(names, func(l protocol.List) bool { return l == f.List })
			}
		case <-late:
			t.Fatalf("nothing was told of %q", names)
		}
	}
}

// What another process or this one does to a store is told, of a store of either kind; and what it does not do is not.
func TestListsAreTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"directory", "database"} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
			name := t.TempDir()
			if kind == "database" {
				_, name = postgres(t)
			}
			s, err := store.Open(t.Context(), name, store.Options{State: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			elsewhere := func(deed string, run protocol.RunID) error {
				c := exec.Command(self, "-test.run=^TestWriteAsAnotherProcess$")
				c.Env = append(os.Environ(), "WF_TEST_STORE="+name, "WF_TEST_DEED="+deed, "WF_TEST_RUN="+string(run))
				out, err := c.CombinedOutput()
				if err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			}
			b := daemon.NewLists(s, storeTables{s: s}, slog.New(slog.NewTextHandler(t.Output(), nil)))
			t.Cleanup(b.Close)
			names := []protocol.List{protocol.ListRuns, protocol.ListDeletions, protocol.ListNotifications, protocol.ListTables, protocol.ListWorkflows}
			frames := listening(t, b, names...)
			told(t, frames, "", names...)
			for where, do := range map[string]func(string, protocol.RunID) error{
				"here": func(deed string, run protocol.RunID) error { return write(s, deed, run) }, "elsewhere": elsewhere,
			} {
				run := protocol.RunID("R-" + where)
				for _, x := range []struct {
					deed  string
					lists []protocol.List
				}{
					{"start", names[:1]}, {"move", names[:1]}, {"tell", names[2:3]}, {"table", names[3:4]}, {"delete", names[:2]},
				} {
					if err := do(x.deed, run); err != nil {
						t.Fatalf("%s %s: %v", x.deed, where, err)
					}
					told(t, frames, run, x.lists...)
				}
			}
			select {
			case f := <-frames:
				t.Errorf("nothing has changed, and yet: %+v", f)
			case <-time.After(10 * lists.Every):
			}
		})
	}
}

// A stoppable is a store that tells of no commit while it is stopped.
type stoppable struct {
	store.Store
	stopped atomic.Bool
}

func (s *stoppable) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
	for {
		now, err := s.Store.AwaitChange(ctx, since)
		if err != nil || !s.stopped.Load() {
			return now, err
		}
		<-ctx.Done()
	}
}

func (s *stoppable) Changes(ctx context.Context) (uint64, error) {
	if s.stopped.Load() {
		return 0, nil
	}
	return s.Store.Changes(ctx)
}

// A client that comes makes the lists be looked at; what moved in those of others is told to them then, as it is not seen again.
func TestAClientThatComesTakesNothingFromOthers(t *testing.T) {
	s, err := cas.Open(t.Context(), t.TempDir(), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	stopped := &stoppable{Store: s}
	stopped.stopped.Store(true)
	b := daemon.NewLists(stopped, storeTables{s: s}, slog.New(slog.DiscardHandler))
	t.Cleanup(b.Close)
	runs := listening(t, b, protocol.ListRuns)
	told(t, runs, "", protocol.ListRuns)
	if err := write(s, "start", "R"); err != nil {
		t.Fatal(err)
	}
	told(t, listening(t, b, protocol.ListDeletions), "", protocol.ListDeletions)
	told(t, runs, "R", protocol.ListRuns)
}

// storeTables is the part of a service that the lists ask.
type storeTables struct {
	api.Service
	s store.Store
}

func (storeTables) Workflows(context.Context) ([]api.Workflow, error) { return nil, nil }

func (t storeTables) Tables(ctx context.Context, _ api.Part) (*api.TableList, error) {
	all, err := cas.Tables(ctx, t.s)
	out := &api.TableList{}
	for _, x := range all {
		out.Items = append(out.Items, api.TableHead{ID: x.ID, Changed: api.Time(fmt.Sprint(x.At))})
	}
	return out, err
}

// A daemon tells of lists to those alone that may read them, on the socket that it has for runs.
func TestListsAreForThoseThatMayReadThem(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, measured)
	d := serving(t, dir)
	for _, c := range []struct {
		scopes []guard.Scope
		status int
	}{{[]guard.Scope{guard.Read}, http.StatusOK}, {[]guard.Scope{guard.Answer}, http.StatusForbidden}, {nil, http.StatusForbidden}} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d.Handler().ServeHTTP(w, r.WithContext(guard.With(r.Context(), guard.Identity{Name: "ada", Scopes: c.scopes})))
		}))
		t.Cleanup(h.Close)
		for _, list := range []protocol.List{protocol.ListRuns, protocol.ListDeletions, protocol.ListNotifications, protocol.ListTables, protocol.ListWorkflows} {
			res, err := http.Get(h.URL + "/v1/" + string(list))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, res.Body)
			if err := errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != c.status {
				t.Errorf("%v: %s is answered with %s, %v", c.scopes, list, res.Status, err)
			}
		}
		conn, res, err := websocket.Dial(t.Context(), h.URL+"/v1/replay", &websocket.DialOptions{Subprotocols: []string{protocol.FramesJSON}})
		if c.status != http.StatusOK {
			if err == nil || res.StatusCode != c.status {
				t.Errorf("%v: the socket is answered with %v, %v", c.scopes, res, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"list_request","id":"7","lists":["runs"]}`)); err != nil {
			t.Fatal(err)
		}
		read := func() protocol.Frame {
			_, text, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f, err := protocol.ParseFrame(protocol.JSONFrames, text)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if f := read(); f.List != protocol.ListRuns || !f.All {
			t.Errorf("first comes %+v", f)
		}
		run := begun(t, d, "ends", `{}`)
		for f := read(); !slices.Contains(f.Runs, run); f = read() {
			if f.Type != protocol.FrameListChanged {
				t.Fatalf("%+v", f)
			}
		}
	}
}

// fill begins runs of one event.
func fill(b *testing.B, s store.Store, runs int) {
	b.Helper()
	for first := 0; first < runs; first += 500 {
		var batch cas.Batch
		for i := first; i < first+500; i++ {
			e, err := cas.Encode(protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Seq: 1, TS: int64(i + 1), Type: protocol.EvText, Data: []byte{0xa0}})
			if err != nil {
				b.Fatal(err)
			}
			batch.Blocks = append(batch.Blocks, e)
			batch.Moves = append(batch.Moves, cas.Move{Name: protocol.RunHead(protocol.RunID(fmt.Sprintf("R-%06d", i))), New: e.Link, TS: int64(i + 1), Events: []cas.EventRef{{Seq: 1, CID: e.Link}}})
		}
		if err := s.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// What a process spends on one change beside many runs: the commit, a supervisor, the frame, and the heads of the list that a client reads then.
func BenchmarkAChangeIsPushed(b *testing.B) {
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, runs := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(runs), func(b *testing.B) {
			s, err := cas.Open(b.Context(), b.TempDir(), cas.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			fill(b, s, runs)
			k := daemon.NewSupervisor(s, &engine.Engine{Store: s, Version: "test"}, slog.New(slog.DiscardHandler))
			k.Start()
			defer k.Close()
			board := daemon.NewLists(s, storeTables{s: s}, slog.New(slog.DiscardHandler))
			b.Cleanup(board.Close)
			frames := listening(b, board, protocol.ListRuns)
			told(b, frames, "", protocol.ListRuns)
			for k.Kept() < runs { // looked at
				<-time.After(lists.Every)
			}
			change := func() {
				if err := write(s, "start", "N"); err != nil {
					b.Fatal(err)
				}
				told(b, frames, "N", protocol.ListRuns)
				if heads, err := s.Newest(b.Context()); err != nil || len(heads) != runs+1 {
					b.Fatal(len(heads), err)
				}
			}
			change()
			before := spent()
			for b.Loop() {
				change()
				<-time.After(2 * lists.Every)
			}
			b.ReportMetric(float64((spent()-before).Microseconds())/1000/float64(b.N), "cpu-ms/change")
		})
	}
}

// How long a commit takes to be told, beside 10,000 runs, and what one look costs.
func BenchmarkListsTold(b *testing.B) {
	for _, kind := range []string{"directory", "database"} {
		b.Run(kind, func(b *testing.B) {
			b.Setenv("XDG_STATE_HOME", filepath.Join(b.TempDir(), "state"))
			var s, other store.Store
			name := b.TempDir()
			if kind == "database" {
				_, name = postgres(b)
			}
			for _, to := range []*store.Store{&s, &other} {
				opened, err := store.Open(b.Context(), name, store.Options{State: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				defer opened.Close()
				*to = opened
			}
			fill(b, s, 10_000)
			board := daemon.NewLists(s, storeTables{s: s}, slog.New(slog.DiscardHandler))
			b.Cleanup(board.Close)
			frames := listening(b, board, protocol.ListRuns)
			told(b, frames, "", protocol.ListRuns)
			for i, by := range []store.Store{s, other} {
				b.Run([]string{"here", "elsewhere"}[i], func(b *testing.B) {
					var waited []time.Duration
					for b.Loop() {
						b.StopTimer()
						<-time.After(3 * lists.Every) // it is quiet, as before a person looks
						b.StartTimer()
						if err := write(by, "start", "N"); err != nil {
							b.Fatal(err)
						}
						at := time.Now()
						told(b, frames, "N", protocol.ListRuns)
						waited = append(waited, time.Since(at))
					}
					slices.Sort(waited)
					b.ReportMetric(float64(waited[len(waited)/2].Microseconds())/1000, "ms-to-frame")
				})
			}
		})
	}
}
