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

// Join connects the daemon to a hub, as long as it runs, until stop is called. stop is never nil.
func (d *Daemon) Join(h Remote) (stop func(), err error) {
	stop = func() {}
	secure, err := h.Secure()
	if err != nil {
		return stop, err
	}
	if _, _, err := client.Reach(h.URL, secure); err != nil {
		return stop, err
	}
	id, err := workerID(d.Service.Store.Beside(), d.Name, h.TokenFile)
	if err != nil {
		return stop, err
	}
	reached := h.URL
	if h.TokenFile == "" {
		if reached, _, err = (Remote{URL: h.URL, CA: h.CA, Cert: h.Cert, Key: h.Key}).Way(); err != nil {
			return stop, err
		}
		if !strings.HasPrefix(reached, "unix:") {
			return stop, protocol.ErrUnauthorized.With("name the file with the token that wf hub made for this worker: --hub-token-file FILE", "the hub %s wants a token of its workers", h.URL)
		}
	}
	identity, err := workerIdentity()
	if err != nil {
		return stop, err
	}
	worker := &relay.Worker{Hub: reached, TLS: secure, ID: id, Name: d.Name, Version: d.Service.Version, Handler: d.Handler(), Log: d.Log,
		Store: newHubStore(d.Service, d.Supervisor), Identity: identity, Capacity: cmp.Or(h.Capacity, max(4, 2*runtime.NumCPU())),
		Moved: d.moved}
	if h.Admin {
		worker.Scopes = guard.AllScopes
	}
	if h.TokenFile != "" {
		worker.Token = func() (string, error) { return ReadToken(h.TokenFile) }
		if _, err := worker.Token(); err != nil {
			return stop, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := worker.Serve(ctx); err != nil {
			d.Log.Error("the hub is given up", "hub", h.URL, "error", err)
		}
	})
	return func() { cancel(); done.Wait() }, nil
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
