package guard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"wf/protocol"
)

// DefaultTCP is where a server listens on TCP if nothing else is said.
const DefaultTCP = "127.0.0.1:8765"

// Endpoint is where to listen: a unix socket or a TCP address.
type Endpoint struct {
	Socket string // path, "" for TCP
	TCP    string // host:port
}

// ParseEndpoint reads unix, unix:PATH, tcp, PORT or HOST:PORT. socket is the path of unix
// alone. A text that is none of these is an error wrapping protocol.ErrUsage.
func ParseEndpoint(s, socket string) (Endpoint, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok && path != "" {
		return Endpoint{Socket: path}, nil
	}
	if s == "unix" {
		return Endpoint{Socket: socket}, nil
	}
	if s == "tcp" {
		return Endpoint{TCP: DefaultTCP}, nil
	}
	if _, err := strconv.ParseUint(s, 10, 16); err == nil {
		return Endpoint{TCP: net.JoinHostPort("127.0.0.1", s)}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("%q is no address to listen on; want unix, unix:PATH, PORT or HOST:PORT: %w", s, protocol.ErrUsage)
	}
	return Endpoint{TCP: net.JoinHostPort(host, port)}, nil
}

// Loopback reports whether only this machine can reach the endpoint. A name other than
// localhost is taken for one that leads elsewhere.
func (e Endpoint) Loopback() bool {
	if e.Socket != "" {
		return true
	}
	host, _, err := net.SplitHostPort(e.TCP)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// String is the endpoint as people write it.
func (e Endpoint) String() string {
	if e.Socket != "" {
		return "unix:" + e.Socket
	}
	return e.TCP
}

// Listen opens the endpoint. secure is the TLS of a TCP endpoint, or nil, keys what opens it.
// Beyond loopback both are needed: without them, and on TCP without keys at all, the error
// wraps protocol.ErrInsecure and nothing was opened. An address that is taken gives an error
// wrapping protocol.ErrInUse. door has the places of connections over TCP; nil is one for this endpoint alone. log has
// a line for each peer that is refused; it may be nil.
func (e Endpoint) Listen(ctx context.Context, secure *tls.Config, keys *Keys, door *Door, log *slog.Logger) (net.Listener, error) {
	if e.Socket != "" {
		l, err := listenUnix(ctx, e.Socket, log)
		if err != nil {
			return nil, err
		}
		return limit(l, MaxConns), nil
	}
	switch {
	case keys == nil:
		return nil, protocol.ErrInsecure.With("give a token file", "%s needs a token: other programs and web pages reach it", e)
	case !e.Loopback() && secure == nil:
		return nil, protocol.ErrInsecure.With("listen on 127.0.0.1, or give --tls-cert and --tls-key", "%s can be reached from other machines: that needs TLS and a token", e)
	}
	var c net.ListenConfig
	address := strings.Replace(e.TCP, "localhost:", "127.0.0.1:", 1)
	l, err := c.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: %w", e, protocol.ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", e, err)
	}
	if door == nil {
		door = NewDoor(nil, log)
	}
	l = door.listen(l)
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	return l, nil
}

// HostsOf are the names by which a listener is called, and the one to show: for a unix socket
// wf and localhost, on loopback 127.0.0.1, localhost and [::1] with the port, else the address
// itself. more are names that the owner allows, with or without a port.
func HostsOf(l net.Listener, more []string) (hosts []string) {
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return []string{"wf", "localhost"}
	}
	port := strconv.Itoa(address.Port)
	switch {
	case address.IP.IsLoopback():
		hosts = []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
		if address.IP.To4() == nil {
			hosts[0], hosts[2] = hosts[2], hosts[0]
		}
	case !address.IP.IsUnspecified():
		hosts = []string{net.JoinHostPort(address.IP.String(), port)}
	}
	for _, h := range more {
		h = strings.ToLower(h)
		if _, _, err := net.SplitHostPort(h); err != nil {
			hosts = append(hosts, h+":"+port) // 443 and 80 are left out by browsers
			if port != "443" && port != "80" {
				continue
			}
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// LoadTLS reads a certificate with its key, for TLS 1.3 alone.
func LoadTLS(certFile, keyFile string) (*tls.Config, error) {
	c, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %v: %w", certFile, keyFile, err, protocol.ErrUsage)
	}
	return &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}, nil
}

// Limits of every connection.
const (
	HeaderTime  = 5 * time.Second
	IdleTime    = 2 * time.Minute
	HeaderBytes = 16 << 10
)

// Server serves a handler within the limits: for the handshake of TLS, for the headers of a request, and between two
// requests. It sets no deadline for answers: streams go on, and set their own for each write.
func Server(h http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: HeaderTime, IdleTimeout: IdleTime, MaxHeaderBytes: HeaderBytes}
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	s.ErrorLog = stdlog.New(serverLog{log}, "", 0)
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, placed(c))
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if x := placed(c); x != nil {
			x.is(state)
		}
	}
	return s
}

// serverLog takes the lines of an http.Server. Each stranger can cause one by a handshake that fails: those are for
// debugging alone.
type serverLog struct{ log *slog.Logger }

// Write takes a line.
func (s serverLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.Contains(line, []byte("TLS handshake error")) {
		level = slog.LevelDebug
	}
	s.log.Log(context.Background(), level, string(bytes.TrimSpace(line)))
	return len(line), nil
}
