package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"wf/protocol"
)

// ErrForeignServer is a port of this machine that is not known to be served by a process of the
// own user. Nothing was sent there.
var ErrForeignServer = &protocol.Error{Code: "foreign_server", Message: "the port is not known to be served by a process of yours",
	Hint: "start the hub yourself, reach it by its socket with --hub unix:PATH, or, if you trust the process at that port with the token, name the token with --hub-token-file FILE"}

// proofTime is how long a server may take to accept a connection, before which it is not known
// whose it is.
const proofTime = 5 * time.Second

// dialOwn connects to a port of this machine, and gives the connection only if its other end is a
// process of the own user; else the error wraps ErrForeignServer, and no byte was sent. Any user may
// listen on a port that is free, and would be sent the token.
func dialOwn(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	literals := []string{host}
	if host == "localhost" { // a name is no proof of an address
		literals = []string{"127.0.0.1", "::1"}
	}
	var failures []error
	for _, ip := range literals {
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(ip, port))
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if err := prove(ctx, c); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", address, err), c.Close())
		}
		return c, nil
	}
	return nil, errors.Join(failures...)
}

// prove is nil if the other end of a connection belongs to a process of the own user.
func prove(ctx context.Context, c net.Conn) error {
	own, errOwn := netip.ParseAddrPort(c.LocalAddr().String())
	server, errServer := netip.ParseAddrPort(c.RemoteAddr().String())
	if err := errors.Join(errOwn, errServer); err != nil {
		return fmt.Errorf("%w: %w", ErrForeignServer, err)
	}
	if !server.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%s is no address of this machine alone: %w", server, ErrForeignServer)
	}
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	for {
		uid, known, err := endUID(server, own)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrForeignServer, err)
		case known && uid == os.Geteuid() && uid != overflowUID:
			return nil
		case known:
			return fmt.Errorf("a process of user %s serves it, and you are user %d: %w", nameOf(uid), os.Geteuid(), ErrForeignServer)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no process here has accepted the connection (is the port forwarded?): %w", ErrForeignServer)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// overflowUID stands for all users that have no number in this user namespace.
const overflowUID = 65534

func nameOf(uid int) string {
	if uid == overflowUID {
		return "65534 (nobody, or one of another user namespace)"
	}
	return strconv.Itoa(uid)
}
