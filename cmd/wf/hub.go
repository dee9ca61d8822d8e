package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/cmd/internal/render"
	"wf/daemon"
	"wf/engine"
	"wf/files"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/queue/embedded"
	"wf/hub/relay"
	"wf/hub/reply"
	"wf/hub/web"
	"wf/protocol"
	"wf/service/compose"
)

// hubFlags are how a hub listens and where its data lies.
type hubFlags struct {
	serveFlags
	data     string
	clientCA string
	newAgent string // an agent to make a token for
}

// defaultHub is where a hub listens if nothing else is said.
const defaultHub = "127.0.0.1:8766"

func newHub(a *app) *cobra.Command {
	var f hubFlags
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Bring agents and those who follow them together",
		Long: `Start a hub. Agents (wf serve --hub) dial out to it; browsers and wf --hub see the runs of all of them
and start new ones, which go to an agent that has the workflow. The hub keeps a queue, the agents and which
agent has which run, and nothing of what is in the runs: those stay with their agents. It may be stopped and
started at any time, even with an empty disk.

A token is wanted always, beyond this machine TLS as well. Agents have a token of their own: one that all of
them share, or one for each (--new-agent), with which no other agent can take its name or its runs.`,
		Example: `  wf hub
  wf serve --hub http://127.0.0.1:8766 --hub-token-file ~/.local/state/wf/hub/agent.token

  # a token for one agent alone, also while the hub runs
  wf hub --new-agent desk-1

  # another address for a browser, from the hub that runs
  wf hub --login

  # for other machines
  wf hub --listen 0.0.0.0:443 --host hub.example.org --tls-cert hub.pem --tls-key hub.key`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.newAgent != "" {
				return a.newAgent(f)
			}
			if f.login {
				return a.hubLogin(cmd.Context(), f)
			}
			return a.serveHub(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.listen, "listen", []string{defaultHub}, "where: PORT, HOST:PORT or unix:PATH; may be given several times")
	flags.StringVar(&f.data, "data", "", "directory of queue, tokens and pointers (default: in the user's state directory)")
	flags.StringVar(&f.name, "name", "", "name of this hub (default: that of the machine)")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the tokens, mode 0600; made if it is not there")
	flags.StringVar(&f.cert, "tls-cert", "", "certificate, for TLS")
	flags.StringVar(&f.key, "tls-key", "", "its key")
	flags.StringVar(&f.clientCA, "client-ca", "", "certificate (PEM) that must have signed that of every agent; their token is wanted all the same")
	flags.StringArrayVar(&f.hosts, "host", nil, "a further name that the hub goes by")
	flags.StringArrayVar(&f.origins, "origin", nil, "a further origin that may send requests, such as https://wf.example.org")
	flags.StringVar(&f.newAgent, "new-agent", "", "make a token that is good for the agent with this id alone, print its file, and end")
	flags.BoolVar(&f.login, "login", false, "print a new address for a browser, from the hub that runs at --listen, and end")
	return cmd
}

// place fills in where the data lies.
func (f *hubFlags) place() (err error) {
	if f.data == "" {
		f.data, err = hubDir()
	}
	if f.tokenFile == "" {
		f.tokenFile = filepath.Join(f.data, hubTokens)
	}
	return err
}

// hubLogin has the hub that listens at the first address make a code, and prints what to open.
func (a *app) hubLogin(ctx context.Context, f hubFlags) error {
	named := f.tokenFile != ""
	if err := f.place(); err != nil {
		return err
	}
	if socket := filepath.Join(f.data, hubSocket); files.Exists(socket) && !named {
		server, err := client.New("unix:"+socket, client.Options{})
		if err != nil {
			return err
		}
		return a.newCode(ctx, server)
	}
	e, err := guard.ParseEndpoint(f.listen[0], filepath.Join(f.data, hubSocket))
	if err != nil {
		return err
	}
	url := "http://" + e.TCP
	switch {
	case e.Socket != "":
		url = "unix:" + e.Socket
	case f.cert != "" || len(f.hosts) > 0:
		url = "https://" + e.TCP
		if _, port, err := net.SplitHostPort(e.TCP); err == nil && len(f.hosts) > 0 {
			url = "https://" + net.JoinHostPort(f.hosts[0], port)
		}
	}
	token, err := daemon.ReadToken(f.tokenFile)
	if err != nil {
		return err
	}
	o := client.Options{Token: token, Own: !named}
	if f.cert != "" { // it may be signed by nobody that the system knows
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		if o.TLS.RootCAs, err = certificates("--tls-cert", f.cert); err != nil {
			return err
		}
	}
	server, err := client.New(url, o)
	if err != nil {
		return err
	}
	return a.newCode(ctx, server)
}

// serveHub runs a hub until ctx ends.
func (a *app) serveHub(ctx context.Context, f hubFlags) error {
	if err := f.place(); err != nil {
		return err
	}
	if f.name == "" {
		if host, err := os.Hostname(); err == nil {
			f.name = host
		}
	}
	log := a.newLog()
	store, err := embedded.Open(filepath.Join(f.data, "hub.db"), embedded.Options{})
	if err != nil {
		return err
	}
	return errors.Join(a.openHub(ctx, f, store, log), store.Close())
}

// hubDir is where the data of a hub lies if nothing else is said.
func hubDir() (string, error) {
	dir, err := compose.UserDir("XDG_STATE_HOME", ".local/state")
	if err != nil {
		return "", protocol.Hinted(err, "name a directory with --data DIR")
	}
	return filepath.Join(dir, "hub"), nil
}

func (a *app) openHub(ctx context.Context, f hubFlags, store *embedded.Store, log *slog.Logger) error {
	keys, err := guard.OpenKeys(f.tokenFile, nil)
	if err != nil {
		return err
	}
	keys.Owner = compose.User()
	agentToken, err := agentTokenFile(f.data, keys)
	if err != nil {
		return err
	}
	doors, err := hubDoors(ctx, f, keys, log)
	if err != nil {
		return err
	}
	h := &relay.Hub{Queue: store.Queue, Registry: store.Registry, Pointers: store.Pointers,
		Name: f.name, Version: version(), Page: web.Handler(), Log: log,
		NewCode: daemon.CodeFor(keys, doors), NamesWorker: keys.NamesWorker, RequestRun: engine.RequestRun}
	handler := h.Handler()
	if f.clientCA != "" {
		handler = certified(handler)
	}
	failed := make(chan error, len(doors))
	for _, door := range doors {
		go func() { failed <- door.Serve(handler) }()
	}
	if err = a.announceHub(f, doors, keys, agentToken); err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	h.Close()
	for _, door := range doors {
		err = errors.Join(err, door.Close())
	}
	return err
}

// certified lets agents in that have a certificate which was verified.
func certified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == relay.WorkerPath && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			reply.Error(w, fail(protocol.ErrForbidden, "give the agent --hub-cert and --hub-key", "this hub wants a certificate of its agents"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hubDoors listens everywhere it is told to, or nowhere.
func hubDoors(ctx context.Context, f hubFlags, keys *guard.Keys, log *slog.Logger) (doors []*daemon.Listener, err error) {
	defer func() {
		if err != nil {
			for _, d := range doors {
				err = errors.Join(err, d.Close())
			}
		}
	}()
	secure, err := daemon.TLS(f.cert, f.key)
	if err != nil {
		return nil, err
	}
	if f.clientCA != "" {
		if secure == nil {
			return nil, usagef("--client-ca needs TLS: give --tls-cert and --tls-key too")
		}
		if secure.ClientCAs, err = certificates("--client-ca", f.clientCA); err != nil {
			return nil, err
		}
		secure.ClientAuth = tls.VerifyClientCertIfGiven // browsers have none
	}
	socket := filepath.Join(f.data, hubSocket)
	listen := f.listen
	if !slices.ContainsFunc(listen, func(s string) bool { return strings.HasPrefix(s, "unix") }) && len(socket) <= daemon.LongestSocket {
		listen = append(slices.Clone(listen), "unix:"+socket) // for the other processes of the user
	}
	for _, text := range listen {
		e, err := guard.ParseEndpoint(text, socket)
		if err != nil {
			return doors, err
		}
		l, err := e.Listen(ctx, secure, keys, log)
		if err != nil {
			return doors, err
		}
		d := daemon.NewListener(l, e, f.options(), secure != nil, keys, log)
		if e.Socket != "" { // agents of the same user need no token there
			d.Guard.Peer.Scopes = append(append([]guard.Scope(nil), guard.AllScopes...), guard.Worker)
		}
		doors = append(doors, d)
	}
	return doors, keepAddresses(f.data, doors)
}

// agentTokenFile is the file with the token that agents share. It is made when it is not there, and
// the token put among those that open the hub.
func agentTokenFile(data string, keys *guard.Keys) (string, error) {
	path := filepath.Join(data, "agent.token")
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	token, err := keys.AddShared()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("token for agents: %w", err)
	}
	return path, nil
}

// newAgent makes a token that is good for one agent alone, and prints the file for that agent.
func (a *app) newAgent(f hubFlags) error {
	if err := f.place(); err != nil {
		return err
	}
	keys, err := guard.OpenKeys(f.tokenFile, nil)
	if err != nil {
		return err
	}
	line, err := keys.AddWorker(f.newAgent)
	if err != nil {
		return err
	}
	path := filepath.Join(f.data, "agents", f.newAgent+".token")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("token for the agent %s: %w", f.newAgent, err)
	}
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		return fmt.Errorf("token for the agent %s: %w", f.newAgent, err)
	}
	_, err = fmt.Fprintln(a.Out, path)
	return err
}

// hubJSON is wf.hub/v1: the one line that a hub writes for programs, once it listens.
type hubJSON struct {
	Schema     string           `json:"schema"`
	PID        int              `json:"pid"`
	Name       string           `json:"name"`
	Version    string           `json:"version"`
	Data       string           `json:"data"`
	Listen     []daemon.Address `json:"listen"`
	TokenFile  string           `json:"token_file"`
	AgentToken string           `json:"agent_token_file"`
}

// announceHub says where the hub listens and how agents come to it.
func (a *app) announceHub(f hubFlags, doors []*daemon.Listener, keys *guard.Keys, agentToken string) error {
	out := hubJSON{Schema: "wf.hub/v1", PID: os.Getpid(), Name: f.name, Version: version(), Data: f.data,
		TokenFile: keys.Path(), AgentToken: agentToken}
	var err error
	if out.Listen, err = daemon.Addresses(keys, doors); err != nil {
		return err
	}
	if a.AsJSON() {
		a.Answered = true
		return render.WriteLine(a.Out, out)
	}
	p := a.Out.Paint()
	fmt.Fprintf(a.Out, "%s wf hub  %s  data %s\n", p.Cyan("●"), p.Bold(out.Name), out.Data)
	for _, l := range out.Listen {
		if l.Open != "" {
			fmt.Fprintf(a.Out, "  %s   %s\n", p.Dim("open"), l.Open)
		}
		command := "wf serve --hub " + l.URL
		if l.Open != "" {
			command += " --hub-token-file " + agentToken
		}
		fmt.Fprintf(a.Out, "  %s  %s\n", p.Dim("agent"), command)
	}
	_, err = fmt.Fprintf(a.Out, "  %s  %s\n", p.Dim("token"), out.TokenFile)
	return err
}
