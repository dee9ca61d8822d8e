package guard

import (
	"log/slog"
	"net"
)

// OwnPeers takes connections of the own user only, and on Linux from the own user and pid namespaces
// only, whatever the permissions of the socket are; others are closed. log has a line for each.
// It is for sockets that a program binds itself.
func OwnPeers(l *net.UnixListener, log *slog.Logger) net.Listener { return ownPeers{l, log} }

type ownPeers struct {
	*net.UnixListener
	log *slog.Logger
}

// Accept gives the next connection of the own user; others are closed.
func (p ownPeers) Accept() (net.Conn, error) {
	for {
		c, err := p.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if err = checkPeer(c); err == nil {
			return c, nil
		}
		p.log.Warn("peer refused", "socket", p.Addr().String(), "why", err)
		_ = c.Close() // of another user
	}
}

// checkPeer is nil for a connection of a peer that may be served.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = admit(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}
