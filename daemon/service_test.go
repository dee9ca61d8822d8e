package daemon_test

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/queue/embedded"
	"wf/hub/relay"
	"wf/service/compose"
	"wf/service/servicetest"
	"wf/store"
)

// opened is a store in a directory, with what runs its workflows.
func opened(t testing.TB, dir string) (*compose.Setup, store.Store) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	s, err := cas.Open(t.Context(), filepath.Join(dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := &compose.Setup{}
	t.Cleanup(func() {
		u.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return u, s
}

// The service of a command keeps what every service promises.
func TestTheServiceOfThisProcess(t *testing.T) {
	servicetest.Test(t, servicetest.Suite{Open: func(t *testing.T, dir string) servicetest.Service {
		u, s := opened(t, dir)
		f := daemon.NewForeground(u, s)
		catalog, err := u.NewCatalog([]string{dir}, s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		f.Catalog, f.Dir = catalog, dir
		return f
	}})
}

// serving starts a daemon of a store.
func serving(t *testing.T, dir string) *daemon.Daemon {
	t.Helper()
	d := unstarted(t, dir)
	d.Start()
	return d
}

// unstarted is a daemon of a store, which the test starts.
func unstarted(t *testing.T, dir string) *daemon.Daemon {
	t.Helper()
	u, s := opened(t, dir)
	d, err := daemon.New(u, s, daemon.Options{Dir: dir, Workflows: []string{dir}, Name: "desk", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// answering serves a handler at a socket until the test ends.
func answering(t testing.TB, h http.Handler) (address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wf") // a short path
	if err != nil {
		t.Fatal(err)
	}
	e := guard.Endpoint{Socket: filepath.Join(dir, "s")}
	l, err := e.Listen(t.Context(), nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	served := daemon.NewListener(l, e, daemon.ListenOptions{}, false, nil, slog.New(slog.DiscardHandler))
	served.Guard.Peer.Scopes = append(slices.Clone(guard.AllScopes), guard.Worker)
	done := make(chan error, 1)
	go func() { done <- served.Serve(h) }()
	t.Cleanup(func() {
		if err := errors.Join(served.Close(), <-done, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return served.URL
}

// behind is the service of a server.
func behind(t testing.TB, address string) servicetest.Service {
	t.Helper()
	a, err := client.New(address, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return client.Service{API: a, Name: address}
}

// So does a daemon over HTTP, behind its guard.
func TestTheServiceOfADaemon(t *testing.T) {
	servicetest.Test(t, servicetest.Suite{Remote: true, Open: func(t *testing.T, dir string) servicetest.Service {
		return behind(t, answering(t, serving(t, dir).Handler()))
	}})
}

// meeting is a hub that has no worker yet, and its address.
func meeting(t *testing.T) (*relay.Hub, string) {
	t.Helper()
	disk, err := embedded.Open(filepath.Join(t.TempDir(), "hub.db"))
	if err != nil {
		t.Fatal(err)
	}
	hub := &relay.Hub{Queue: disk.Queue, Registry: disk.Registry, Pointers: disk.Pointers, Name: "hub", MadeBy: engine.MadeBy, GracePeriod: time.Millisecond}
	t.Cleanup(func() {
		hub.Close()
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return hub, answering(t, hub.Handler())
}

// And so does a hub, whose worker lets its owners in.
func TestTheServiceOfAHub(t *testing.T) {
	servicetest.Test(t, servicetest.Suite{Remote: true, Open: func(t *testing.T, dir string) servicetest.Service {
		return behind(t, joined(t, serving(t, dir)))
	}})
}

// joined is a hub whose worker is a daemon.
func joined(t *testing.T, d *daemon.Daemon) (address string) {
	t.Helper()
	hub, address := meeting(t)
	leave, err := d.Join(daemon.Remote{URL: address, Admin: true})
	t.Cleanup(leave)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for connected := 0; connected == 0; <-tick.C {
		workers, err := hub.Registry.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		connected = len(workers)
	}
	return address
}
