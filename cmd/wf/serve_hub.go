package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"wf/cas"
	"wf/engine"
	"wf/files"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/relay"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// reachFlags say how another server is reached: a hub, or a daemon.
type reachFlags struct {
	url       string
	tokenFile string
	ca        string // certificates to trust instead of the system's
	cert, key string // that of this agent, for a hub that wants one
}

// joinFlags add --hub and what belongs to it to wf serve.
func (f *reachFlags) join(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "hub", "", "connect to this hub, so that others can follow and start runs here")
	flags.StringVar(&f.tokenFile, "hub-token-file", "", "file with the token for agents of the hub")
	flags.StringVar(&f.ca, "hub-ca", "", "certificate (PEM) that signed the hub's, instead of those of the system")
	flags.StringVar(&f.cert, "hub-cert", "", "certificate of this agent, for a hub with --client-ca")
	flags.StringVar(&f.key, "hub-key", "", "its key")
}

// tls is the TLS of the connection, nil for the system's.
func (f reachFlags) tls() (*tls.Config, error) {
	if f.ca == "" && f.cert == "" && f.key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if f.ca != "" {
		pool, err := certificates("--hub-ca", f.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if f.cert != "" || f.key != "" {
		own, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, usagef("--hub-cert %s with --hub-key %s: %v", f.cert, f.key, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// certificates reads those of a file (PEM), which a flag names.
func certificates(flag, path string) (*x509.CertPool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, usagef("%s %s holds no certificate", flag, path)
	}
	return pool, nil
}

// joinHub connects the daemon to a hub, for ever, until stop is called. stop is never nil.
func (a *app) joinHub(d *daemon, f reachFlags) (stop func(), err error) {
	stop = func() {}
	secure, err := f.tls()
	if err != nil {
		return stop, err
	}
	if _, _, err := client.Reach(f.url, secure); err != nil {
		return stop, err
	}
	id, err := f.agentID(d.store.Dir(), d.name)
	if err != nil {
		return stop, err
	}
	reached := f.url
	if f.tokenFile == "" { // a hub of this user is reached without a token
		way, err := (&app{reach: f}).reachHub(f.url)
		if err != nil {
			return stop, err
		}
		if !strings.HasPrefix(way.url, "unix:") {
			return stop, fail(protocol.ErrUnauthorized, "name the file with the token that wf hub made for this agent: --hub-token-file FILE", "the hub %s wants a token of its agents", f.url)
		}
		reached = way.url
	}
	agent := &relay.Agent{Hub: reached, TLS: secure, ID: id, Name: d.name, Version: version(), Handler: d.handler(), Log: d.log,
		Store: &hubStore{s: d.store, catalog: d.backend.catalog},
		Moved: func(run protocol.RunID, to string) {
			err := d.backend.Cancel(d.keeper.ctx, run, "the agent "+to+" has this run: the lease of the job had ended here")
			if err != nil && !errors.Is(err, protocol.ErrFinal) {
				d.log.Error("a run of another agent was not stopped", "run", run, "error", err)
			}
		}}
	if f.tokenFile != "" {
		agent.Token = func() (string, error) { return readToken(f.tokenFile) }
		if _, err := agent.Token(); err != nil {
			return stop, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := agent.Serve(ctx); err != nil {
			d.log.Error("the hub is given up", "hub", f.url, "error", err)
		}
	})
	return func() { cancel(); done.Wait() }, nil
}

// agentID is the id of this agent: that of the token which the hub made for it, else that of the
// store.
func (f reachFlags) agentID(store, name string) (string, error) {
	if f.tokenFile == "" {
		return agentID(store, name)
	}
	words, err := tokenWords(f.tokenFile)
	if err != nil {
		return "", err
	}
	for _, w := range words[1:] {
		if id, ok := strings.CutPrefix(w, string(guard.Agent)+":"); ok {
			return id, nil
		}
	}
	return agentID(store, name)
}

// agentID is the name of this store among the agents of a hub: made once, and kept with it.
func agentID(store, name string) (string, error) {
	path := filepath.Join(store, serveDir, "agent-id")
	// A store may come from elsewhere: a link would give the hub another file, or have one made.
	b, err := files.Read(path, 1<<10)
	if errors.Is(err, files.ErrOdd) {
		return "", fail(protocol.ErrStore, "remove it; wf makes a new one", "agent id: %v", err)
	}
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("agent id: %w", err)
	}
	var chance [4]byte
	_, _ = rand.Read(chance[:]) // never fails (crypto/rand)
	id := oneLine(name, 60) + "-" + hex.EncodeToString(chance[:])
	if err := files.MakeDir(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("agent id: %w", err)
	}
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("agent id: %w", err)
	}
	return id, nil
}

// hubStore is what a hub is told of the store.
type hubStore struct {
	s       *cas.Store
	catalog compose.Catalog

	mu       sync.Mutex
	requests map[protocol.RunID]string // request ids of runs, which never change
	caps     []string
	looked   time.Time
}

// lookForWorkflows is how often the directories of workflows are read for the hub.
const lookForWorkflows = 5 * time.Second

// Caps are the names and files of the workflows that can be started.
func (h *hubStore) Caps(context.Context) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.looked) < lookForWorkflows {
		return h.caps, nil
	}
	all, err := h.catalog.List()
	if err != nil {
		return nil, err
	}
	h.caps, h.looked = nil, time.Now()
	for _, f := range all {
		if f.Problem == "" {
			h.caps = append(h.caps, f.Name, f.Path)
		}
	}
	return h.caps, nil
}

// Runs are all runs with their heads.
func (h *hubStore) Runs(ctx context.Context) ([]relay.Run, error) {
	heads, err := h.s.Heads(ctx, protocol.RunHead(""))
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.requests == nil {
		h.requests = map[protocol.RunID]string{}
	}
	out := make([]relay.Run, 0, len(heads))
	for _, head := range heads {
		run := protocol.RunOf(head.Name)
		request, known := h.requests[run]
		if !known {
			started, err := query.Started(ctx, h.s, run)
			if err != nil {
				return nil, err
			}
			// A fork begins with the event of the run that it was forked from, request and all.
			if started.RequestID != "" && engine.RequestRun(started.RequestID) == run {
				request = started.RequestID
			}
			h.requests[run] = request
		}
		out = append(out, relay.Run{ID: run, HeadSeq: head.Seq, HeadCID: head.Link.String(), RequestID: request})
	}
	return out, nil
}

// AwaitChange returns with every commit, and every few seconds for what lies in files.
func (h *hubStore) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
	wait, stop := context.WithTimeout(ctx, lookForWorkflows)
	defer stop()
	now, err := h.s.AwaitChange(wait, since)
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return since, nil
	}
	return now, err
}
