package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"wf/cas"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/relay"
	"wf/hub/seal"
	"wf/protocol"
	"wf/service/compose"
)

// Join connects the daemon to a hub, or to each of several that serve one fleet, as long as it runs, until stop is called. stop
// is never nil.
func (d *Daemon) Join(h Remote) (stop func(), err error) {
	stop = func() {}
	id, err := workerID(d.Service.Store.Beside(), d.Name, h.TokenFile)
	if err != nil {
		return stop, err
	}
	identity, err := workerIdentity()
	if err != nil {
		return stop, err
	}
	told, process, handler := newHubStore(d.Service, d.Supervisor), relay.NewProcess(), d.Handler()
	var workers []*relay.Worker
	for _, one := range h.each() {
		w, err := one.worker()
		if err != nil {
			return stop, err
		}
		w.ID, w.Name, w.Version, w.Identity, w.Process = id, d.Name, d.Service.Version, identity, process
		w.Handler, w.Log, w.Store, w.Moved = handler, d.Log, &hubView{hubStore: told}, d.moved
		workers = append(workers, w)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	for _, w := range workers {
		done.Go(func() {
			if err := w.Serve(ctx); err != nil {
				d.Log.Error("the hub is given up", "hub", w.Hub, "error", err)
			}
		})
	}
	return func() { cancel(); done.Wait() }, nil
}

// worker is what connects a worker to the hub, with what is said of the hub alone.
func (r Remote) worker() (*relay.Worker, error) {
	secure, err := r.Secure()
	if err != nil {
		return nil, err
	}
	if _, _, err := client.Reach(r.URL, secure); err != nil {
		return nil, err
	}
	w := &relay.Worker{Hub: r.URL, TLS: secure, Capacity: cmp.Or(r.Capacity, max(4, 2*runtime.NumCPU()))}
	if r.Admin {
		w.Scopes = guard.AllScopes
	}
	if r.TokenFile != "" {
		w.Token = func() (string, error) { return ReadToken(r.TokenFile) }
		_, err := w.Token()
		return w, err
	}
	if w.Hub, _, err = (Remote{URL: r.URL, CA: r.CA, Cert: r.Cert, Key: r.Key}).Way(); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(w.Hub, "unix:") {
		return nil, protocol.ErrUnauthorized.With("name the file with the token that wf hub made for this worker: --hub-token-file FILE", "the hub %s wants a token of its workers", r.URL)
	}
	return w, nil
}

// moved stops a run that another worker has. The hub says so again whenever the run moves here, as it does while it closes.
func (d *Daemon) moved(run protocol.RunID, to string) {
	err := d.Service.GiveUp(d.Supervisor.ctx, run, "the worker "+to+" has this run: the lease of the job had ended here")
	if err != nil && !errors.Is(err, protocol.ErrFinal) {
		d.Log.Error("a run of another worker was not stopped", "run", run, "error", err)
	}
}

// workerIdentity opens the jobs that hubs keep for the workers of this user. It is made once.
func workerIdentity() (*seal.Identity, error) {
	state, err := compose.UserDir("XDG_STATE_HOME", ".local/state")
	if err != nil {
		return nil, err
	}
	key, err := cas.Secret(filepath.Join(state, "worker.key"))
	if err != nil {
		return nil, fmt.Errorf("key of this worker: %w", err)
	}
	return seal.ParseIdentity(key)
}
