package guard

import (
	"log/slog"
	"net"
	"os"
)

// OwnPeers takes connections of the own user only, whatever the permissions of the socket are;
// others are closed. It is for sockets that a program binds itself.
func OwnPeers(l *net.UnixListener) net.Listener { return ownPeers{l} }

type ownPeers struct{ *net.UnixListener }

func (p ownPeers) Accept() (net.Conn, error) {
	for {
		c, err := p.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerOf(c)
		if err == nil && uid == os.Geteuid() {
			return c, nil
		}
		slog.Warn("peer refused", "socket", p.Addr().String(), "uid", uid, "error", err)
		_ = c.Close() // of a stranger
	}
}
