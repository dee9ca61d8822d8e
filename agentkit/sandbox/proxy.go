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
	conn, err := p.names.dial(p.ctx, e, false)
	switch {
	case errors.Is(err, errPrivate):
		return nil, http.StatusForbidden, p.refuse(e, err.Error()+"; an address that the list itself names is allowed")
	case err != nil:
		return nil, http.StatusBadGateway, err
	}
	return conn, 0, nil
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
