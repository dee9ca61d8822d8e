package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"wf/api"
	"wf/engine"
	"wf/files"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/relay"
	"wf/hub/reply"
	"wf/hub/server"
	"wf/hub/web"
	"wf/metrics"
	"wf/protocol"
	"wf/store"
)

// HubOptions are how a hub listens and where its data lies.
type HubOptions struct {
	ListenOptions
	Data     string // directory of queue, tokens and pointers; "" is one in the state of the user. Or the database of queue and pointers
	State    string // directory of tokens and socket where Data is a database; "" is one in the state of the user
	Name     string // "" is that of the machine
	Version  string // of the program
	ClientCA string // file with the certificates (PEM) one of which must have signed that of each worker; "" is none
	Log      *slog.Logger
}

// place is the directory of the hub, and the options with where the queue is and the file of the tokens.
func (o HubOptions) place() (HubOptions, hubData, error) {
	dir := o.Data
	if err := store.Named(o.Data); err != nil {
		return o, "", err
	}
	if store.IsDatabase(o.Data) {
		dir = o.State
	} else if o.State != "" {
		return o, "", protocol.ErrUsage.With("leave it out: what is beside the queue lies in --data", "--state %s is for a hub whose --data is a database", o.State)
	}
	data, err := openHubData(dir)
	if err != nil {
		return o, data, err
	}
	if !store.IsDatabase(o.Data) {
		o.Data = string(data)
	}
	if o.TokenFile == "" {
		o.TokenFile = data.tokens()
	}
	return o, data, nil
}

// NewWorker makes a token that is good for one worker alone, also while the hub runs, and gives the file for it.
func (o HubOptions) NewWorker(id string) (file string, err error) {
	o, data, err := o.place()
	if err != nil {
		return "", err
	}
	keys, err := guard.OpenKeys(o.TokenFile, nil)
	if err != nil {
		return "", err
	}
	return data.newWorker(id, keys)
}

// Dial is a client of the hub that listens as the options say: by its socket, unless a file with tokens is named,
// else at its first address. The caller closes it.
func (o HubOptions) Dial() (*client.API, error) {
	named := o.TokenFile != ""
	o, data, err := o.place()
	if err != nil {
		return nil, err
	}
	if files.Exists(data.socket()) && !named {
		return client.New("unix:"+data.socket(), client.Options{})
	}
	e, err := guard.ParseEndpoint(o.Addresses[0], data.socket())
	if err != nil {
		return nil, err
	}
	url := "http://" + e.TCP
	switch {
	case e.Socket != "":
		url = "unix:" + e.Socket
	case o.Cert != "" || len(o.Hosts) > 0:
		url = "https://" + e.TCP
		if _, port, err := net.SplitHostPort(e.TCP); err == nil && len(o.Hosts) > 0 {
			url = "https://" + net.JoinHostPort(o.Hosts[0], port)
		}
	}
	token, err := ReadToken(o.TokenFile)
	if err != nil {
		return nil, err
	}
	how := client.Options{Token: token, Own: !named}
	if o.Cert != "" { // the system may know nothing that signed it
		how.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		if how.TLS.RootCAs, err = certificates("--tls-cert", o.Cert); err != nil {
			return nil, err
		}
	}
	return client.New(url, how)
}

// A Hub brings workers and their clients together. It drives nothing itself.
type Hub struct {
	HubOptions
	WorkerToken string // file with the token that workers share
	// Metrics are what GET /metrics shows.
	Metrics *metrics.Registry

	doors
	kept  hubKept
	relay *relay.Hub
}

// OpenHub opens the data of a hub, listens everywhere it is told to, and answers. The caller closes it.
func OpenHub(ctx context.Context, o HubOptions) (*Hub, error) {
	o, data, err := o.place()
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		if host, err := os.Hostname(); err == nil {
			o.Name = host
		}
	}
	kept, err := o.openKept(ctx, data)
	if err != nil {
		return nil, err
	}
	h := &Hub{HubOptions: o, kept: kept}
	if err := h.start(ctx, data); err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	return h, nil
}

func (h *Hub) start(ctx context.Context, data hubData) error {
	keys, err := openKeys(h.TokenFile)
	if err != nil {
		return err
	}
	if h.WorkerToken, err = data.workerToken(keys); err != nil {
		return err
	}
	if err := h.listen(ctx, data, keys); err != nil {
		return err
	}
	h.Metrics = new(metrics.Registry)
	h.Metrics.Process(h.Version)
	registerHub(h.Metrics, h.kept)
	meter := server.NewMeter(h.Metrics, h.Log)
	readable := newProbe(nil, func(ctx context.Context) error {
		_, err := h.kept.Queue.List(ctx)
		return err
	})
	h.relay = &relay.Hub{Metrics: h.Metrics, Ready: readable.ready, Queue: h.kept.Queue, Registry: h.kept.Registry, Pointers: h.kept.Pointers,
		Name: h.Name, Version: h.Version, Page: web.Handler(), Log: h.Log,
		NewCode: h.newCode, NamesWorker: keys.NamesWorker, MadeBy: engine.MadeBy, DigestKey: h.kept.digests}
	handler := meter.Wrap(h.relay.Handler())
	if h.ClientCA != "" {
		handler = certified(handler)
	}
	h.serve(handler, meter)
	return nil
}

// certified lets workers in that have a certificate which was verified.
func certified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == relay.WorkerPath && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			reply.Error(w, protocol.ErrForbidden.With("give the worker --hub-cert and --hub-key", "this hub wants a certificate of its workers"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// listen listens everywhere it is told to, or nowhere.
func (h *Hub) listen(ctx context.Context, data hubData, keys *guard.Keys) error {
	secure, err := h.tls()
	if err != nil {
		return err
	}
	if h.ClientCA != "" {
		if secure == nil {
			return protocol.ErrUsage.With("", "--client-ca needs TLS: give --tls-cert and --tls-key too")
		}
		if secure.ClientCAs, err = certificates("--client-ca", h.ClientCA); err != nil {
			return err
		}
		secure.ClientAuth = tls.VerifyClientCertIfGiven // browsers have none
	}
	at := h.Addresses
	if !slices.ContainsFunc(at, func(s string) bool { return strings.HasPrefix(s, "unix") }) && len(data.socket()) <= LongestSocket {
		at = append(slices.Clone(at), "unix:"+data.socket()) // for the other processes of the user
	}
	ends, err := endpoints(at, data.socket())
	if err != nil {
		return err
	}
	if h.doors, err = h.open(ctx, ends, secure, keys, h.Log); err != nil {
		return err
	}
	for i, e := range ends {
		if e.Socket != "" { // workers of the same user need no token there
			peer := &h.all[i].Guard.Peer
			peer.Scopes = append(slices.Clone(peer.Scopes), guard.Worker)
		}
	}
	if err := data.keepAddresses(h.all); err != nil {
		return errors.Join(err, h.doors.close())
	}
	return nil
}

// Where says where it listens, with a one-time code for each address that wants one.
func (h *Hub) Where() (*api.HubServing, error) {
	out := &api.HubServing{Schema: "wf.hub/v1", PID: os.Getpid(), Name: h.Name, Version: h.Version, Data: store.Shown(h.Data),
		TokenFile: h.keys.Path(), AgentToken: h.WorkerToken}
	var err error
	out.Listen, err = h.addresses()
	return out, err
}

// Close accepts no more connections, and closes the data.
func (h *Hub) Close() error {
	h.relay.Close()
	return errors.Join(h.doors.close(), h.kept.Close())
}
