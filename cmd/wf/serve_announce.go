package main

import (
	"fmt"
	"os"
	"strings"

	"wf/cmd/internal/render"
	"wf/daemon"
	"wf/hub/guard"
	"wf/protocol"
	"wf/service/compose"
)

// servingJSON is wf.serving/v1: the one line that a daemon writes for programs, once it listens.
type servingJSON struct {
	Schema    string           `json:"schema"`
	PID       int              `json:"pid"`
	Name      string           `json:"name"`
	Version   string           `json:"version"`
	Store     string           `json:"store"`
	Listen    []daemon.Address `json:"listen"`
	TokenFile string           `json:"token_file"` // "" where only sockets listen
	Workflows []string         `json:"workflows"`  // directories
}

// announce says where the daemon listens.
func (a *app) announce(d *daemon.Daemon, doors []*daemon.Listener, keys *guard.Keys) error {
	out := servingJSON{Schema: "wf.serving/v1", PID: os.Getpid(), Name: d.Name, Version: version(), Store: d.Service.Store.Dir(),
		Workflows: d.Service.Catalog.Dirs}
	if out.Workflows == nil {
		out.Workflows = []string{}
	}
	var err error
	if out.Listen, err = daemon.Addresses(keys, doors); err != nil {
		return err
	}
	if keys != nil {
		out.TokenFile = keys.Path()
	}
	if a.AsJSON() {
		a.Answered = true
		return render.WriteLine(a.Out, out)
	}
	p := a.Out.Paint()
	fmt.Fprintf(a.Out, "%s wf serve  %s  store %s\n", p.Cyan("●"), p.Bold(d.Name), out.Store)
	for _, l := range out.Listen {
		if l.Open == "" {
			fmt.Fprintf(a.Out, "  %s %s\n", p.Dim("socket"), strings.TrimPrefix(l.URL, "unix:"))
			continue
		}
		fmt.Fprintf(a.Out, "  %s   %s\n", p.Dim("open"), l.Open)
	}
	if out.TokenFile != "" {
		fmt.Fprintf(a.Out, "  %s  %s\n", p.Dim("token"), out.TokenFile)
	} else {
		fmt.Fprintf(a.Out, "  %s   wf serve --listen %s opens a page for browsers\n", p.Dim("more"), guard.DefaultTCP)
	}
	_, err = fmt.Fprintf(a.Out, "  %s\n", p.Dim("Ctrl-C suspends what runs; the next start goes on"))
	return err
}

// tellWaiting lists the workflows that wait for trust.
func (a *app) tellWaiting(s compose.Catalog) error {
	all, err := s.List()
	for _, f := range all {
		if len(f.Waits) > 0 {
			a.Progress("  %s waits for trust: wf trust %s", render.Visible(f.Name), protocol.ShellWord(f.Path))
		}
	}
	return err
}
