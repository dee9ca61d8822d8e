package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"wf/protocol"
)

// What a command with a list of hosts finds in its environment. It has a network namespace of its own, where
// nothing else listens, and the port is none of those that the kernel gives out.
const (
	proxyPort = 27180
	proxyURL  = "http://127.0.0.1:27180"
	noProxy   = "localhost,127.0.0.1,::1"
)

// Bounds of a proxy, which works in the process of wf for a command that may be hostile.
const (
	proxyConns    = 256 // at a time; more wait
	proxyHeadMax  = 16 << 10
	proxyHeadTime = 10 * time.Second // for a request
	proxyDialTime = 10 * time.Second // for each address
	proxyAddrs    = 8                // of a name, that are tried
	proxyTold     = 16               // endpoints that were refused, in reports
)

// A proxy is the way of one command to the endpoints of its list, and to nothing else. It knows one
// method, CONNECT, and carries bytes without looking into them. Names are resolved here, and the address
// that was judged is the one that is dialled.
type proxy struct {
	listener net.Listener
	hosts    []string
	names    resolver
	met      func(string)

	ctx  context.Context // done when the proxy closes, and its connections with it
	stop context.CancelFunc
	all  sync.WaitGroup

	mu   sync.Mutex
	told map[string]bool // endpoints that were refused
}

// A resolver says where names lead, and which addresses are those of this machine.
type resolver struct {
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	own    func() ([]net.Addr, error)
}

// resolve gives the addresses to which a name may lead.
func (r resolver) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := r.lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	own, err := r.own()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range found {
		a = a.Unmap().WithZone("")
		here := slices.ContainsFunc(own, func(o net.Addr) bool {
			p, err := netip.ParsePrefix(o.String())
			return err == nil && p.Addr().Unmap() == a
		})
		if public(a) && !here {
			out = append(out, a)
		}
	}
	return out, nil
}

// serveProxy begins to accept on a listener of TCP, until close.
func serveProxy(l net.Listener, hosts []string, names resolver, met func(string)) *proxy {
	p := &proxy{listener: l, hosts: hosts, names: names, met: met, told: map[string]bool{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.all.Go(p.accept)
	return p
}

// close ends the proxy and all its connections, and waits for that; of no proxy it does nothing.
func (p *proxy) close() {
	if p == nil {
		return
	}
	p.stop()
	p.listener.Close()
	p.all.Wait()
}

func (p *proxy) accept() {
	free := make(chan struct{}, proxyConns)
	for {
		select {
		case free <- struct{}{}:
		case <-p.ctx.Done():
			return
		}
		conn, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as too many open files
			<-free
			select {
			case <-time.After(50 * time.Millisecond):
			case <-p.ctx.Done():
				return
			}
			continue
		}
		p.all.Go(func() {
			p.serve(conn.(*net.TCPConn))
			<-free
		})
	}
}

// closing closes a connection when the proxy does, and when the function that it gives is called.
func (p *proxy) closing(c net.Conn) (closed func()) {
	stop := context.AfterFunc(p.ctx, func() { c.Close() })
	return func() {
		stop()
		c.Close()
	}
}

// serve answers one request, and is then a tunnel.
func (p *proxy) serve(client *net.TCPConn) {
	defer p.closing(client)()
	client.SetReadDeadline(time.Now().Add(proxyHeadTime)) // an error shows when it is read
	head := &io.LimitedReader{R: client, N: proxyHeadMax}
	in := bufio.NewReader(head)
	req, err := http.ReadRequest(in)
	if err != nil {
		answer(client, http.StatusBadRequest, "this is no request that the proxy of wf can read")
		return
	}
	if req.Method != http.MethodConnect {
		answer(client, http.StatusMethodNotAllowed, "the proxy of wf knows CONNECT alone, as clients use it for https; plain http needs  network: allow  on the role")
		return
	}
	up, status, err := p.dial(req.RequestURI)
	if err != nil {
		answer(client, status, err.Error())
		return
	}
	defer p.closing(up)()
	head.N = math.MaxInt64
	client.SetReadDeadline(time.Time{})
	early, _ := in.Peek(in.Buffered()) // what is there can be peeked at
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		tunnel(client, up, early)
	}
}

// dial connects with an endpoint of the list, or gives the status and the text of the answer.
func (p *proxy) dial(target string) (*net.TCPConn, int, error) {
	e, err := protocol.ParseEndpoint(target)
	if err != nil {
		return nil, http.StatusBadRequest, errors.New("CONNECT wants HOST:PORT")
	}
	if !slices.Contains(p.hosts, e.String()) {
		return nil, http.StatusForbidden, p.refuse(e, fmt.Sprintf("network: [%q] on the role allows it", e))
	}
	addrs := []netip.Addr{}
	if a, ok := e.Addr(); ok {
		addrs = append(addrs, a) // named as it is, whatever it is
	} else {
		found, err := p.names.resolve(p.ctx, e.Host)
		if err != nil {
			return nil, http.StatusBadGateway, fmt.Errorf("the name %s could not be resolved", e.Host)
		}
		addrs = found
		if len(addrs) == 0 {
			return nil, http.StatusForbidden, p.refuse(e, "its name leads to an address of this machine or a private network; an address that the list itself names is allowed")
		}
	}
	dialer := net.Dialer{Timeout: proxyDialTime}
	for _, a := range addrs[:min(len(addrs), proxyAddrs)] {
		conn, err := dialer.DialContext(p.ctx, "tcp", netip.AddrPortFrom(a, e.Port).String())
		if err == nil {
			return conn.(*net.TCPConn), 0, nil
		}
	}
	return nil, http.StatusBadGateway, fmt.Errorf("%s could not be reached", e)
}

// refuse is the error of an endpoint that the command may not reach, which is reported once.
func (p *proxy) refuse(e protocol.Endpoint, why string) error {
	err := fmt.Errorf("%s was refused: %s", e, why)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told[e.String()] && len(p.told) < proxyTold {
		p.told[e.String()] = true
		if p.met != nil {
			p.met(err.Error())
		}
	}
	return err
}

// closedNets are those that no name may lead to, beside what netip tells: this network, shared addresses, IETF's
// own, benchmarks, reserved ones, and the ways of IPv6 to an IPv4 address.
var closedNets = sync.OnceValue(func() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10"} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
})

// public reports whether a name may lead to an address: not to a loopback, a private network and its metadata.
func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(closedNets(), func(n netip.Prefix) bool { return n.Contains(a) })
}

// answer refuses a request. The text is in the first line too, which many clients show.
func answer(c *net.TCPConn, status int, text string) {
	c.SetDeadline(time.Now().Add(time.Second)) // an error shows when it is written
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n", status, text, len(text)+1, text)
	if err == nil && c.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c, proxyHeadMax)) // to close over what was sent would take the answer away
	}
}

// tunnel carries bytes both ways until both ends are through, or one has failed. The end of one direction is
// handed on, and the other goes on.
func tunnel(client, up *net.TCPConn, early []byte) {
	done := make(chan error, 2)
	carry := func(to, from *net.TCPConn, early []byte) {
		_, err := to.Write(early)
		if err == nil {
			_, err = io.Copy(to, from) // the kernel moves the bytes
		}
		if err == nil {
			err = to.CloseWrite()
		}
		done <- err
	}
	go carry(up, client, early)
	go carry(client, up, nil)
	if err := <-done; err != nil {
		client.Close()
		up.Close()
	}
	<-done
}
