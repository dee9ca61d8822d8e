package relay

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"time"

	"github.com/coder/websocket"
	"github.com/hashicorp/yamux"
)

// A tunnel is yamux over a WebSocket. The hub is its client: it opens the streams, but for the
// first one.
func newTunnel(ctx context.Context, c *websocket.Conn, hub bool, log *slog.Logger) (*yamux.Session, error) {
	conn := &joined{Conn: websocket.NetConn(ctx, c, websocket.MessageBinary)}
	conf := yamux.DefaultConfig()
	conf.EnableKeepAlive = false // the heartbeat sees to that
	conf.ConnectionWriteTimeout = sendTime
	conf.MaxStreamWindowSize = 1 << 20
	conf.StreamCloseTimeout = time.Minute
	conf.LogOutput = nil
	conf.Logger = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	if hub {
		return yamux.Client(conn, conf)
	}
	return yamux.Server(conn, conf)
}

// joined writes a header of yamux and the data behind it as one message: yamux writes them one
// after the other, from one goroutine.
// https://github.com/hashicorp/yamux/blob/master/spec.md
type joined struct {
	net.Conn
	held []byte // a header; its data comes with the next Write
}

const (
	yamuxHeader = 12
	yamuxData   = 0 // the type of a frame that carries data, in its second byte
)

func (j *joined) Write(b []byte) (int, error) {
	if j.held == nil && len(b) == yamuxHeader && b[1] == yamuxData && binary.BigEndian.Uint32(b[8:]) > 0 {
		j.held = append(make([]byte, 0, yamuxHeader+int(binary.BigEndian.Uint32(b[8:]))), b...)
		return len(b), nil
	}
	if j.held == nil {
		return j.Conn.Write(b)
	}
	whole := append(j.held, b...)
	j.held = nil
	n, err := j.Conn.Write(whole)
	return max(0, n-yamuxHeader), err
}
