package daemon_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"

	"wf/api"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/hub/client"
	"wf/protocol"
)

// Screens at a daemon, and at a hub that has it as a worker, show what a run says that another process drives.
func TestScreensAtServersShowWhatAnotherProcessSays(t *testing.T) {
	short, err := os.MkdirTemp("", "wf")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	t.Setenv("XDG_RUNTIME_DIR", short)
	for where, at := range map[string]func(*testing.T, *daemon.Daemon) string{
		"daemon": func(t *testing.T, d *daemon.Daemon) string { return answering(t, d.Handler()) },
		"hub":    joined,
	} {
		t.Run(where, func(t *testing.T) {
			u, s := opened(t, t.TempDir())
			d, err := daemon.New(u, s, daemon.Options{Alone: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}) // it does not go on with the run itself
			if err != nil {
				t.Fatal(err)
			}
			d.Start()
			t.Cleanup(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			source := []byte("wf: 1\nname: talk\nroles: {say: {set: {said: it}}}\n")
			p, diags := lang.Load(source, lang.Options{})
			if p == nil {
				t.Fatal(diags)
			}
			f := daemon.NewForeground(u, s)
			run, _, err := f.Begin(t.Context(), engine.Launch{Program: p, Source: source, Inputs: []byte("{}"), Workspace: t.TempDir(), CreatedBy: "anna"})
			if err != nil {
				t.Fatal(err)
			}
			drives := daemon.NewLiveSockets(s)
			defer drives.Close()
			for e, err := range s.After(t.Context(), run, 0) {
				if err != nil {
					t.Fatal(err)
				}
				drives.Notice(api.Update{Run: run, Entry: &e})
			}
			drives.Notice(api.Update{Run: run, Step: "say#1", Data: protocol.Delta{Kind: "text", Text: "half a sen"}})

			a, err := client.New(at(t, d), client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			came := errors.New("it came")
			ctx, stop := context.WithCancelCause(t.Context())
			err = client.Service{API: a}.Follow(ctx, run, api.Following{Until: api.Never}, func(u api.Update) error {
				if delta, said := u.Data.(protocol.Delta); said && u.Step == "say#1" && delta.Text == "half a sen" {
					stop(came)
				}
				return nil
			})
			if !errors.Is(err, came) {
				t.Error(err)
			}
		})
	}
}
