package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"wf/api"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/replay"
	"wf/protocol"
	"wf/store"
)

// LiveSockets let other processes watch the runs that this one drives: on a unix socket beside
// the lock of each, it serves the replay protocol with what is said before it is recorded.
//
//	engine ─► notice ─► broadcast ─► a socket of the run ─► wf watch
//
// The socket appears with the first thing that happens and goes with the drive. A run does
// not need it: without it watchers follow the store, and see no live output.
type LiveSockets struct {
	store store.Store
	said  replay.Broadcast

	mu   sync.Mutex
	open map[protocol.RunID]*liveSocket
	gone sync.WaitGroup
}

// liveSocket is that of one run.
type liveSocket struct {
	parent protocol.RunID // "" where it is not known, or there is none
	path   string
	replay *replay.Server
	http   *http.Server
}

func NewLiveSockets(s store.Store) *LiveSockets {
	return &LiveSockets{store: s, open: map[protocol.RunID]*liveSocket{}}
}

// Notice passes on what happens. It is called while the run's lock is held, and so a socket
// without an answer is left over from a process that was killed.
func (l *LiveSockets) Notice(n api.Update) {
	if d, ok := n.Data.(protocol.Delta); ok {
		l.said.Delta(n.Run, n.Step, d)
		return
	}
	if n.Entry == nil {
		return
	}
	l.said.Event(n.Run, &n.Entry.Event)
	if n.Entry.Type == protocol.EvDone || n.Entry.Type == protocol.EvCancelled {
		l.End(n.Run)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[n.Run] == nil {
		// What hinders it (no space, no sockets here) must not touch the run.
		if s, err := l.listen(n.Run); err == nil {
			l.open[n.Run] = s
		}
	}
	if s := l.open[n.Run]; s != nil && n.Parent != "" {
		s.parent = n.Parent
	}
}

// End closes the sockets of a run that this process no longer drives, and of its sub-workflows: one that waits or was
// suspended has no end of its own. Watchers read the rest from the store.
func (l *LiveSockets) End(run protocol.RunID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(run)
}

func (l *LiveSockets) end(run protocol.RunID) {
	l.said.End(run)
	s := l.open[run]
	delete(l.open, run)
	for child, c := range l.open {
		if c.parent == run {
			l.end(child)
		}
	}
	if s != nil {
		os.Remove(s.path) // one that is left behind is replaced
		l.gone.Go(func() {
			s.http.Close()
			s.replay.Close()
		})
	}
}

// leaveTime is how long a process that ends waits for watchers to take leave.
const leaveTime = 500 * time.Millisecond

// Close ends all sockets, and waits for leaveTime at most: a watcher may not read.
func (l *LiveSockets) Close() {
	l.mu.Lock()
	runs := maps.Clone(l.open)
	l.mu.Unlock()
	for run := range runs {
		l.End(run)
	}
	done := make(chan struct{})
	go func() {
		l.gone.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(leaveTime):
	}
}

// listen puts a socket of mode 0600 in place: it is made in a directory that no other user can
// enter, since the umask belongs to the commands that this process starts as well.
func (l *LiveSockets) listen(run protocol.RunID) (*liveSocket, error) {
	dir, name, err := RunSocket(l.store.Beside(), run)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	if c, err := DialRun(context.Background(), l.store.Beside(), run); err == nil {
		return nil, errors.Join(protocol.ErrRunLive, c.Close())
	}
	private, err := os.MkdirTemp(dir, ".sock-")
	if err != nil {
		return nil, fmt.Errorf("socket of run %s: %w", run, err)
	}
	defer os.RemoveAll(private)
	var listener *net.UnixListener
	if err := withSocketPath(private, "s", func(short string) (err error) {
		if listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"}); err == nil {
			listener.SetUnlinkOnClose(false) // it is elsewhere by then
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("socket of run %s: %w", run, err)
	}
	made := filepath.Join(private, "s")
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("socket of run %s: %w", run, err), listener.Close())
	}
	s := &liveSocket{path: path, replay: &replay.Server{Feed: l.store, Deltas: &l.said}}
	mux := http.NewServeMux()
	mux.Handle("GET /v1/replay", s.replay.WebSocket())
	mux.Handle("GET /v1/sessions/{id}/events", s.replay.Events())
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	l.gone.Go(func() { s.http.Serve(guard.OwnPeers(listener, slog.New(slog.DiscardHandler))) }) // it ends with Close: its error says no more than that
	return s, nil
}

// dialOther connects to the process that drives a run, unless that is this one: what lies at the path then is not
// the own socket, which comes and goes under mu.
func (l *LiveSockets) dialOther(ctx context.Context, run protocol.RunID) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[run] != nil || l.said.Drives(run) {
		return nil, errOwn
	}
	return DialRun(ctx, l.store.Beside(), run)
}

// DialRun connects to the process that drives a run of a store.
func DialRun(ctx context.Context, store string, run protocol.RunID) (c net.Conn, err error) {
	dir, name, err := RunSocket(store, run)
	if err != nil {
		return nil, err
	}
	err = withSocketPath(dir, name, func(path string) (err error) {
		var d net.Dialer
		c, err = d.DialContext(ctx, "unix", path)
		return err
	})
	return c, err
}

// replayAt follows a run at the process to which dial connects.
func replayAt(run protocol.RunID, dial func(context.Context) (net.Conn, error)) client.Replay {
	return client.Replay{URL: "http://wf/v1/replay", Codec: protocol.CBORFrames, Run: run, Live: true, Once: true,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}}}
}

// sunPath is what the address of a unix socket holds everywhere, with its final zero.
const sunPath = 104

// withSocketPath gives f a path of a socket that fits into an address. On Linux a directory
// with too long a name is reached by its descriptor; elsewhere it has no socket.
func withSocketPath(dir, name string, f func(path string) error) error {
	path := filepath.Join(dir, name)
	if len(path) < sunPath {
		return f(path)
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the path %s is too long for a socket: %w", path, fs.ErrInvalid)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(filepath.Join("/proc/self/fd", fmt.Sprint(d.Fd()), name))
}
