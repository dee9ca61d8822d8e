package daemon

import (
	"errors"
	"log/slog"

	"wf/service/compose"
	"wf/store"
)

// Private runs a daemon that listens to nothing and drives nothing but what f asks of it, until f returns.
//
//	screen ─► service ─► supervisor ─► engine ─► store
//	   ▲                                  │
//	   └────────── Daemon.Follow ◄────────┘
func Private(u *compose.Setup, s store.Store, dir string, f func(*Daemon) error) error {
	d, err := New(u, s, Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Alone: true})
	if err != nil {
		return err
	}
	d.Start()
	return errors.Join(f(d), d.Close())
}
