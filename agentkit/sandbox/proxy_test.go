package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"wf/agentkit/sandbox"
)

// A way is a proxy of a test, with what it reported.
type way struct {
	t    testing.TB
	addr string
	end  func()

	mu  sync.Mutex
	met []string
}

func newWay(t testing.TB, hosts []string, names map[string][]string) *way {
	t.Helper()
	l := listen(t)
	w := &way{t: t, addr: l.Addr().String()}
	lookup := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, a := range names[host] {
			out = append(out, netip.MustParseAddr(a))
		}
		if out == nil {
			return nil, errors.New("no such host")
		}
		return out, nil
	}
	w.end = sandbox.ServeProxy(l, hosts, lookup, func(text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.met = append(w.met, text)
	})
	t.Cleanup(w.end)
	return w
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serveEach calls f for each connection of a new listener, which it closes afterwards, and gives the address.
func serveEach(t testing.TB, f func(c *net.TCPConn)) string {
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().String()
}

func echo(c *net.TCPConn) { io.Copy(c, c) }

// ask sends a request and gives the connection with the first line of the answer.
func (w *way) ask(request string) (*net.TCPConn, *bufio.Reader, string) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		w.t.Fatal(err)
	}
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err != nil {
		w.t.Fatalf("%q: %v", request, err)
	}
	return c.(*net.TCPConn), r, strings.TrimSpace(line)
}

func connect(target string) string {
	return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"
}

// through is a tunnel, behind the head of the answer.
func (w *way) through(target string) (*net.TCPConn, *bufio.Reader) {
	w.t.Helper()
	c, r, line := w.ask(connect(target))
	if _, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 200 Connection established" {
		w.t.Fatalf("%s: %s (%v)", target, line, err)
	}
	return c, r
}

func TestTheListOfHostsIsExact(t *testing.T) {
	at := serveEach(t, echo)
	_, port, _ := net.SplitHostPort(at)
	w := newWay(t, []string{at, "api.example.com:443", "inside.example.com:" + port, "both.example.com:" + port}, map[string][]string{
		"api.example.com": {"192.168.0.1", "::ffff:127.0.0.1"}, "inside.example.com": {"127.0.0.1"}, "other.example.com": {"127.0.0.1"},
	})
	for request, want := range map[string]string{
		connect(at):                                          "200",
		connect("localhost:" + port):                         "403 localhost:" + port + " was refused: network: [\"localhost:" + port + "\"] on the role allows it",
		connect("127.0.0.1:1"):                               "403",
		connect("[::ffff:127.0.0.1]:" + port):                "400",
		connect("127.1:" + port):                             "400",
		connect("2130706433:" + port):                        "400",
		connect("0x7f000001:" + port):                        "400",
		connect("other.example.com:443"):                     "403",
		connect("api.example.com:80"):                        "403",
		connect("api.example.com.:443"):                      "400",
		connect("x.api.example.com:443"):                     "403",
		connect("API.example.COM:443"):                       "403 api.example.com:443 was refused: its name leads to an address of this machine",
		connect("inside.example.com:" + port):                "403 inside.example.com:" + port + " was refused: its name leads",
		connect("both.example.com:" + port):                  "502",
		connect("api.example.com"):                           "400",
		connect("user@api.example.com:443"):                  "400",
		connect("/x"):                                        "400",
		"GET http://" + at + "/ HTTP/1.1\r\nHost: x\r\n\r\n": "405",
		"POST / HTTP/1.1\r\nHost: " + at + "\r\n\r\n":        "405",
		"\x16\x03\x01 hello\r\n\r\n":                         "400",
		"CONNECT " + at + " HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n": "400",
	} {
		if _, _, line := w.ask(request); !strings.HasPrefix(line, "HTTP/1.1 "+want) {
			t.Errorf("%.60q: %s, want %s", request, line, want)
		}
	}
	w.end()
	for _, want := range []string{"other.example.com:443 was refused: network: [\"other.example.com:443\"] on the role allows it", "127.0.0.1:1 was refused"} {
		if !slices.ContainsFunc(w.met, func(met string) bool { return strings.HasPrefix(met, want) }) {
			t.Errorf("%q was not reported: %q", want, w.met)
		}
	}
}

// What is refused is reported once, and not without end.
func TestRefusalsAreReportedOnce(t *testing.T) {
	w := newWay(t, nil, nil)
	for range 3 {
		w.ask(connect("a.example.com:443"))
	}
	if len(w.met) != 1 {
		t.Errorf("reported: %q", w.met)
	}
	for i := range 100 {
		w.ask(connect(fmt.Sprintf("a%d.example.com:443", i)))
	}
	if len(w.met) > 20 {
		t.Errorf("%d reports", len(w.met))
	}
}

func TestNoNameLeadsIntoAPrivateNetwork(t *testing.T) {
	for _, closed := range []string{
		"127.0.0.1", "127.255.0.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255",
		"192.0.0.8", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1", "fe80::1", "fd00::1", "fd00:ec2::254", "fc00::1", "fec0::1", "ff02::1",
		"64:ff9b::7f00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2001:0:7f00:1::",
	} {
		if sandbox.Public(netip.MustParseAddr(closed)) {
			t.Errorf("%s is public", closed)
		}
	}
	for _, open := range []string{"1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"} {
		if !sandbox.Public(netip.MustParseAddr(open)) {
			t.Errorf("%s is not public", open)
		}
	}
}

// A machine may have a public address itself, where what it serves to its own network alone is reached.
func TestNoNameLeadsToAnAddressOfThisMachine(t *testing.T) {
	own := []net.Addr{&net.IPNet{IP: net.ParseIP("203.0.113.7"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2a00:1450::7"), Mask: net.CIDRMask(64, 128)}}
	for _, a := range []string{"203.0.113.7", "::ffff:203.0.113.7", "2a00:1450::7", "2a00:1450::7%lo"} {
		l := listen(t)
		var met []string
		end := sandbox.ServeProxyOn(own, l, []string{"here.example.com:80"}, func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(a)}, nil
		}, func(text string) { met = append(met, text) })
		w := &way{t: t, addr: l.Addr().String()}
		_, _, line := w.ask(connect("here.example.com:80"))
		end()
		if !strings.HasPrefix(line, "HTTP/1.1 403") || len(met) != 1 {
			t.Errorf("%s: %s, reported %q", a, line, met)
		}
	}
}

// A name is resolved once: the address that was judged is the one that is dialled.
func TestTheAddressThatWasJudgedIsDialled(t *testing.T) {
	reached := make(chan struct{}, 1)
	at := serveEach(t, func(*net.TCPConn) { reached <- struct{}{} })
	_, port, _ := net.SplitHostPort(at)
	l := listen(t)
	var asked atomic.Int32
	end := sandbox.ServeProxy(l, []string{"turns.example.com:" + port}, func(context.Context, string, string) ([]netip.Addr, error) {
		if asked.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("fe80::1%lo")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}, nil)
	defer end()
	w := &way{t: t, addr: l.Addr().String()}
	if _, _, line := w.ask(connect("turns.example.com:" + port)); !strings.HasPrefix(line, "HTTP/1.1 403") || asked.Load() != 1 {
		t.Errorf("%s after %d lookups", line, asked.Load())
	}
	select {
	case <-reached:
		t.Error("the machine was reached")
	default:
	}
}

// What was sent with the request goes through, and so does each end alone.
func TestATunnelIsHalfClosed(t *testing.T) {
	// It answers only when the client is through, and hears the client until then.
	whole := serveEach(t, func(c *net.TCPConn) {
		b, err := io.ReadAll(c)
		fmt.Fprintf(c, "%d bytes, %v", len(b), err)
	})
	// It is through before the client is.
	first := serveEach(t, func(c *net.TCPConn) {
		io.WriteString(c, "hello")
		c.CloseWrite()
		b, err := io.ReadAll(c)
		fmt.Fprint(io.Discard, b, err)
	})
	w := newWay(t, []string{whole, first}, nil)

	c, r, line := w.ask(connect(whole) + "early")
	if _, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatal(line, err)
	}
	io.WriteString(c, "late")
	c.CloseWrite()
	if b, err := io.ReadAll(r); err != nil || string(b) != "9 bytes, <nil>" {
		t.Errorf("%q, %v", b, err)
	}

	c, r = w.through(first)
	if b, err := io.ReadAll(r); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := io.WriteString(c, "still heard"); err != nil {
		t.Error(err)
	}
}

// Clients that say nothing, or read nothing, keep no other from its answer.
func TestSlowClientsKeepNoOtherWaiting(t *testing.T) {
	at := serveEach(t, echo)
	endless := serveEach(t, func(c *net.TCPConn) {
		for b := make([]byte, 1<<16); ; {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	})
	w := newWay(t, []string{at, endless}, nil)
	for range 50 {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "CONN")
		w.through(endless)
	}
	c, r := w.through(at)
	io.WriteString(c, "ping\n")
	if line, err := r.ReadString('\n'); line != "ping\n" {
		t.Error(line, err)
	}
}

// More connections than a proxy has at a time are served in turn, and all bytes arrive.
func TestManyConnectionsAtATime(t *testing.T) {
	at := serveEach(t, echo)
	w := newWay(t, []string{at}, nil)
	payload := strings.Repeat("0123456789abcdef", 1<<12)
	var all sync.WaitGroup
	var failed atomic.Int32
	for range sandbox.ProxyConns + 100 {
		all.Go(func() {
			if err := roundTrip(w.addr, at, payload); err != nil && failed.Add(1) == 1 {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func roundTrip(proxy, at, payload string) error {
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return err
	}
	defer c.Close()
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, connect(at)+payload)
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	if resp.StatusCode != 200 {
		return errors.New(resp.Status)
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, <-sent); err == nil && string(got) != payload {
		err = fmt.Errorf("%d of %d bytes came back", len(got), len(payload))
	}
	return err
}

// The end of a proxy closes what waits, what is a tunnel, and what says nothing.
func TestTheEndOfAProxyClosesAll(t *testing.T) {
	heard := make(chan error, 1)
	at := serveEach(t, func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		heard <- err
	})
	w := newWay(t, []string{at}, nil)
	silent, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, _ := w.through(at)
	w.end()
	for name, conn := range map[string]net.Conn{"a tunnel": c, "a silent client": silent} {
		if n, err := io.Copy(io.Discard, conn); n != 0 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
	<-heard // the server saw the end, with an error or without
	if _, err := net.Dial("tcp", w.addr); err == nil {
		t.Error("the proxy still listens")
	}
}

// BenchmarkTunnel compares a tunnel with the bare connection.
func BenchmarkTunnel(b *testing.B) {
	at := serveEach(b, func(c *net.TCPConn) { io.Copy(io.Discard, c); io.WriteString(c, "x") })
	w := newWay(b, []string{at}, nil)
	chunk := make([]byte, 256<<10)
	for name, dial := range map[string]func() *net.TCPConn{
		"bare": func() *net.TCPConn {
			c, err := net.Dial("tcp", at)
			if err != nil {
				b.Fatal(err)
			}
			return c.(*net.TCPConn)
		},
		"tunnel": func() *net.TCPConn { c, _ := w.through(at); return c },
	} {
		b.Run(name, func(b *testing.B) {
			c := dial()
			defer c.Close()
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := c.Write(chunk); err != nil {
					b.Fatal(err)
				}
			}
			c.CloseWrite()
			if _, err := c.Read(make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
		})
	}
}
