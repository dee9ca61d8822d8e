package main

import (
	"context"
	"errors"
	"fmt"

	"wf/daemon"
	"wf/hub/client"
	"wf/protocol"
)

// errNoDaemon says that no daemon of the store could be asked.
var errNoDaemon = &protocol.Error{Code: "no_daemon", Message: "no wf serve answers", Hint: "wf serve starts one"}

// ownDaemon speaks to the daemon of the store, if one listens at its socket.
func (a *app) ownDaemon() (server *client.API, socket string, err error) {
	dir, _, err := a.StoreDir()
	if err != nil {
		return nil, "", err
	}
	if socket, err = daemon.SocketPath(dir); err != nil {
		return nil, socket, err
	}
	server, err = client.New("unix:"+socket, client.Options{})
	return server, socket, err
}

// login has the daemon of the store make a code, and prints the address with it.
func (a *app) login(ctx context.Context) error {
	server, socket, err := a.ownDaemon()
	if err != nil {
		return err
	}
	if err = a.newCode(ctx, server); errors.Is(err, client.ErrUnreachable) {
		return fmt.Errorf("socket %s: %w", socket, errNoDaemon)
	}
	return err
}
