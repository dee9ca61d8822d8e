package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/hub/replay"
	"wf/protocol"
)

// passing is a process that watches runs which others drive.
func passing(t *testing.T, s *cas.Store) *passedOn {
	t.Helper()
	live := NewLiveSockets(s)
	p := newPassedOn(live, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(func() { live.Close(); p.Close() })
	return p
}

// heard is what a subscriber is sent.
type heard chan protocol.LiveDelta

func hear(t *testing.T, p *passedOn) (h heard, leave func()) {
	t.Helper()
	h = make(heard, 256)
	return h, p.Subscribe("R1", func(d protocol.LiveDelta) { h <- d })
}

// until reads until a text ends with end, and gives all of it.
func (h heard) until(t *testing.T, end string) string {
	t.Helper()
	all := ""
	for !strings.HasSuffix(all, end) {
		select {
		case d := <-h:
			all += d.Delta.Text
		case <-t.Context().Done():
			t.Fatalf("%q came, and not %q", all, end)
		}
	}
	return all
}

func says(text string) api.Update {
	return api.Update{Run: "R1", Step: "a#1", Data: protocol.Delta{Kind: "text", Text: text}}
}

// shortSockets has sockets in a directory with a short name.
func shortSockets(t *testing.T) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "live")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

// atRunSocket serves what lies at the socket of the run until it is killed, which leaves the socket behind.
func atRunSocket(t *testing.T, s *cas.Store, h http.Handler) (kill func()) {
	t.Helper()
	dir, name, err := RunSocket(s.Beside(), "R1")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	served := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- served.Serve(l) }()
	return sync.OnceFunc(func() {
		if err := served.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// record commits a text of the step, as the process that drives the run does.
func record(t *testing.T, s *cas.Store, text string) api.Update {
	t.Helper()
	j, err := s.Journal(t.Context(), "R1")
	if err != nil {
		t.Fatal(err)
	}
	d := protocol.TextSaid{Content: protocol.NewText(text)}
	got, err := j.Append(t.Context(), 2, []cas.Draft{{Step: "a#1", Data: d}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return api.Update{Run: "R1", Entry: &got[0], Data: d, Step: "a#1"}
}

// What the driving process says comes as it said it, also to a subscriber that comes in the middle; all share one
// connection, which ends with the last of them.
func TestWhatAnotherProcessSaysIsPassedOn(t *testing.T) {
	s, _ := liveRun(t, filepath.Join(shortSockets(t), "store"))
	var said replay.Broadcast
	from := replay.Server{Feed: s, Deltas: &said}
	var connections atomic.Int32
	left := make(chan struct{}, 1)
	kill := atRunSocket(t, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Add(1)
		from.WebSocket().ServeHTTP(w, r)
		left <- struct{}{}
	}))
	defer kill()
	defer from.Close()
	first := record(t, s, "before")
	said.Event("R1", &first.Entry.Event)
	said.Delta("R1", "a#1", protocol.Delta{Kind: "thinking", Text: "hm"})
	said.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: "half "})

	p := passing(t, s)
	one, leaveOne := hear(t, p)
	for _, want := range []protocol.LiveDelta{
		{Run: "R1", After: 2, Step: "a#1", N: 1, Delta: protocol.Delta{Kind: "thinking", Text: "hm"}},
		{Run: "R1", After: 2, Step: "a#1", N: 2, Delta: protocol.Delta{Kind: "text", Text: "half "}},
	} {
		if d := <-one; d != want {
			t.Errorf("%+v came, want %+v", d, want)
		}
	}
	said.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: "a "})
	one.until(t, "a ")
	two, leaveTwo := hear(t, p)
	said.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: "sentence"})
	if got := one.until(t, "sentence"); got != "sentence" {
		t.Errorf("the first hears %q", got)
	}
	if got := two.until(t, "sentence"); got != "hmhalf a sentence" {
		t.Errorf("the second hears %q", got)
	}
	leaveOne()
	said.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: "."})
	two.until(t, ".")
	leaveTwo()
	<-left
	p.Close()
	if n := connections.Load(); n != 1 || len(one) != 0 {
		t.Errorf("%d connections; the first heard %d more", n, len(one))
	}
}

// A process that is killed leaves its socket; the next one that drives the run is followed then.
func TestTheNextProcessIsFollowed(t *testing.T) {
	s, first := liveRun(t, filepath.Join(shortSockets(t), "store"))
	var killed replay.Broadcast
	from := replay.Server{Feed: s, Deltas: &killed}
	kill := atRunSocket(t, s, from.WebSocket())
	killed.Event("R1", &first.Entry.Event)
	killed.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: "half a"})
	p := passing(t, s)
	h, leave := hear(t, p)
	defer leave()
	h.until(t, "half a")
	if err := from.Close(); err != nil {
		t.Error(err)
	}
	kill()

	next := NewLiveSockets(s)
	defer next.Close()
	next.Notice(record(t, s, "half"))
	for i := range 3 {
		next.Notice(says(fmt.Sprint("half a ", i)))
	}
	if got, want := h.until(t, "a 2"), "half a 0half a 1half a 2"; got != want {
		t.Errorf("%q came, want %q", got, want)
	}
}

// A connection that broke off begins again with what is being said: what was heard of it before does not come again.
func TestWhatWasHeardDoesNotComeAgain(t *testing.T) {
	s, first := liveRun(t, filepath.Join(shortSockets(t), "store"))
	var said replay.Broadcast
	said.Event("R1", &first.Entry.Event)
	say := func(text string) { said.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: text}) }
	from := &replay.Server{Feed: s, Deltas: &said}
	kill := atRunSocket(t, s, from.WebSocket())
	p := passing(t, s)
	h, leave := hear(t, p)
	defer leave()
	say("one")
	h.until(t, "one")
	breaks := func(meanwhile func()) {
		t.Helper()
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		kill()
		meanwhile()
		from = &replay.Server{Feed: s, Deltas: &said}
		kill = atRunSocket(t, s, from.WebSocket())
	}
	breaks(func() { say(" two"); say(" three") })
	if got := h.until(t, "three"); got != " two three" {
		t.Errorf("%q came again", got)
	}
	breaks(func() {
		e := record(t, s, "one two three")
		said.Event("R1", &e.Entry.Event)
		say("one two three four") // another text, which begins as the one before did
	})
	if got := h.until(t, "four"); got != "one two three four" {
		t.Errorf("%q came behind the event", got)
	}
	breaks(func() {})
	late, leaveLate := hear(t, p)
	defer leaveLate()
	say(" five")
	if got := h.until(t, "five"); got != " five" {
		t.Errorf("%q came again", got)
	}
	if got := late.until(t, "five"); got != "one two three four five" {
		t.Errorf("a late subscriber hears %q", got)
	}
	if err := from.Close(); err != nil {
		t.Error(err)
	}
	kill()
}

// What this process says itself comes once, and not by its own socket; what the other one still says does not come any more.
func TestWhatThisProcessDrivesIsNotTakenFromASocket(t *testing.T) {
	s, first := liveRun(t, filepath.Join(shortSockets(t), "store"))
	var fenced replay.Broadcast
	fenced.Event("R1", &first.Entry.Event)
	from := replay.Server{Feed: s, Deltas: &fenced}
	gone := make(chan struct{})
	kill := atRunSocket(t, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from.WebSocket().ServeHTTP(w, r)
		close(gone)
	}))
	defer kill()
	defer from.Close()
	p := passing(t, s)
	h, leave := hear(t, p)
	defer leave()
	fenced.Delta("R1", "b#1", protocol.Delta{Kind: "text", Text: "there"})
	h.until(t, "there")

	p.live.Notice(record(t, s, "here"))
	fenced.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: "late"})
	p.live.Notice(says("here"))
	<-gone // the connection ends though the other process lives
	p.live.Notice(says(" and now"))
	if got := h.until(t, "now"); got != "here and now" {
		t.Errorf("%q came", got)
	}
	late, leaveLate := hear(t, p)
	defer leaveLate()
	if got := late.until(t, "now"); got != "here and now" || len(late) > 0 {
		t.Errorf("a late subscriber hears %q", got)
	}
	kill()
	p.live.End("R1")
	p.live.Notice(record(t, s, "again")) // now with a socket of its own
	p.live.Notice(says("own"))
	for range 3 {
		p.connect(t.Context(), "R1")
		if _, err := p.live.dialOther(t.Context(), "R1"); !errors.Is(err, errOwn) {
			t.Errorf("the own socket is connected to: %v", err)
		}
	}
	if got := h.until(t, "own"); got != "own" || len(h) > 0 {
		t.Errorf("%q came, and %d more", got, len(h))
	}
}
