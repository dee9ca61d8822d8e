package daemon

import (
	"context"
	"errors"
	"strings"
	"sync"

	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/relay"
	"wf/protocol"
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
	id, err := workerID(d.Service.Store.Dir(), d.Name, h.TokenFile)
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
	worker := &relay.Worker{Hub: reached, TLS: secure, ID: id, Name: d.Name, Version: d.Service.Version, Handler: d.Handler(), Log: d.Log,
		Store: newHubStore(d.Service),
		Moved: func(run protocol.RunID, to string) {
			err := d.Service.Cancel(d.Supervisor.ctx, run, "the worker "+to+" has this run: the lease of the job had ended here")
			if err != nil && !errors.Is(err, protocol.ErrFinal) {
				d.Log.Error("a run of another worker was not stopped", "run", run, "error", err)
			}
		}}
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
