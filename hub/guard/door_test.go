package guard

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"wf/files/filestest"
	"wf/hub/reply"
)

// entrance is a server behind a door.
type entrance struct {
	t       *testing.T
	door    *Door
	address string
	secure  *tls.Config // of clients; nil without TLS
	tokens  map[string]string
	held    chan struct{} // one for each request that is held
	release chan struct{} // closed when those are to be answered
	close   func()
}

func newEntrance(t *testing.T, secure bool, proxies ...string) *entrance {
	t.Helper()
	return newEntranceOf(t, secure, func(*Door) {}, proxies...)
}

// newEntranceOf has a door with other bounds.
func newEntranceOf(t *testing.T, secure bool, bounds func(*Door), proxies ...string) *entrance {
	t.Helper()
	s := &entrance{t: t, tokens: map[string]string{}, held: make(chan struct{}, 10_000), release: make(chan struct{})}
	file := filepath.Join(t.TempDir(), "tokens")
	var lines strings.Builder
	for name, scopes := range map[string]string{"owner": "", "reader": "read", "other": "read", "worker": "agent"} {
		s.tokens[name] = newSecret()
		fmt.Fprintf(&lines, "%s %s # %s\n", s.tokens[name], scopes, name)
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := OpenKeys(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := ParseProxies(proxies)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s.door = NewDoor(trusted, log)
	bounds(s.door)
	var config *tls.Config
	if secure {
		if config, err = LoadTLS(certificate(t)); err != nil {
			t.Fatal(err)
		}
		s.secure = &tls.Config{InsecureSkipVerify: true}
	}
	l, err := (Endpoint{TCP: "127.0.0.1:0"}).Listen(t.Context(), config, keys, s.door, log)
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	g := &Guard{Hosts: HostsOf(l, nil), Keys: keys, Door: s.door, Log: log,
		Public: func(r *http.Request) bool { return r.URL.Path == "/" },
		Signed: func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/v1/hooks/x" }}
	server := Server(g.Wrap(http.HandlerFunc(s.serve)), log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	s.close = sync.OnceFunc(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(s.close)
	return s
}

func (s *entrance) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/hooks/x": // signed is what says so
		if _, err := io.ReadAll(r.Body); err != nil {
			return
		}
		if r.Header.Get("Signed") != "" {
			if err := Admit(r, Holder{Name: "webhook x"}); err != nil {
				reply.Error(w, err)
				return
			}
		}
	case "/v1/held":
		s.held <- struct{}{}
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
	case "/v1/long":
		_, _ = w.Write(make([]byte, 64<<20)) // the client may not read it
		return
	}
	reply.JSON(w, http.StatusOK, string(PeerOf(r)))
}

// dial connects from a source, such as 127.0.0.7; the handshake of TLS is made.
func (s *entrance) dial(source string) (net.Conn, error) {
	c, err := dialFrom(s.t.Context(), source, s.address)
	if err == nil && s.secure != nil {
		c = tls.Client(c, s.secure)
	}
	return c, err
}

func dialFrom(ctx context.Context, source, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 10 * time.Second}
	return d.DialContext(ctx, "tcp", address)
}

// an answer is what came for a request, and what the connection is for the next one.
type answered struct {
	status int
	header http.Header
	body   string
	code   string
	took   time.Duration
}

// say sends a request on a connection, and reads the answer.
func (s *entrance) say(c net.Conn, method, path, body string, lines ...string) (a answered, err error) {
	begun := time.Now()
	if err := c.SetDeadline(begun.Add(20 * time.Second)); err != nil {
		return a, err
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", method, path, s.address, len(body))
	for _, l := range lines {
		head += l + "\r\n"
	}
	if _, err := io.WriteString(c, head+"\r\n"+body); err != nil {
		return a, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	var f reply.Failure
	_ = json.Unmarshal(b, &f) // none for an answer that is no error
	return answered{resp.StatusCode, resp.Header, strings.TrimSpace(string(b)), f.Code, time.Since(begun)}, err
}

// ask sends a request on a connection of its own.
func (s *entrance) ask(source, method, path string, lines ...string) (a answered, err error) {
	begun := time.Now()
	c, err := s.dial(source)
	if err != nil {
		return a, err
	}
	defer c.Close()
	a, err = s.say(c, method, path, "", lines...)
	a.took = time.Since(begun)
	return a, err
}

func (s *entrance) bearer(name string) string { return "Authorization: Bearer " + s.tokens[name] }

// crowd are strangers who come back when they are turned out.
type crowd struct {
	stop context.CancelFunc
	all  sync.WaitGroup
}

// idle does nothing on a connection.
func idle(net.Conn) {}

// newCrowd has n connections, from so many sources, each of which does something and then waits.
func newCrowd(t *testing.T, address string, n, sources int, do func(net.Conn)) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &crowd{stop: stop}
	var here sync.WaitGroup
	for i := range n {
		arrived := sync.OnceFunc(here.Done)
		here.Add(1)
		c.all.Go(func() {
			for ctx.Err() == nil {
				conn, err := dialFrom(ctx, fmt.Sprintf("127.0.0.%d", 1+i%sources), address)
				if err != nil {
					continue
				}
				arrived()
				over := context.AfterFunc(ctx, func() { _ = conn.Close() })
				do(conn)
				_, _ = io.Copy(io.Discard, conn) // until one end closes it
				over()
				_ = conn.Close()
				select {
				case <-ctx.Done():
				case <-time.After(time.Second): // they come back, but are not what keeps this machine busy
				}
			}
			arrived()
		})
	}
	here.Wait()
	return c
}

func (c *crowd) leave() {
	c.stop()
	c.all.Wait()
}

// manySources are 127.0.0.1, 127.0.0.2 and so on, where this machine has them.
func manySources(t *testing.T, n int) int {
	if runtime.GOOS != "linux" && n > 1 {
		t.Skip("127.0.0.2 is no address of this system")
	}
	return n
}

// patience is what a request may take beside strangers: they held it up for 5 s at least, and for as long as they liked.
const patience = 3 * time.Second

// Strangers who open connections and do as little as they can keep nobody out: neither those with a token nor the next
// stranger, who may be about to show one.
func TestF406IdleStrangersKeepNobodyOut(t *testing.T) {
	drip := func(c net.Conn) {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\n")
		each := time.NewTicker(time.Second)
		defer each.Stop()
		for range 10 {
			<-each.C
			if _, err := io.WriteString(c, "X"); err != nil {
				return
			}
		}
	}
	halfBody := func(c net.Conn) {
		_, _ = fmt.Fprintf(c, "POST /v1/hooks/x HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{", c.RemoteAddr())
	}
	noReader := func(c net.Conn) {
		_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", c.RemoteAddr())
	}
	for _, test := range []struct {
		name       string
		secure     bool
		n, sources int
		do         func(net.Conn)
	}{
		{"as many as there were places", false, 512, 1, idle},
		{"2,000 of one source", false, 2000, 1, idle},
		{"2,000 of 50 sources", false, 2000, 50, idle},
		{"2,000 of one source, TLS", true, 2000, 1, idle},
		{"2,000 of 50 sources, TLS", true, 2000, 50, idle},
		{"headers, a byte a second", false, 1200, 50, drip},
		{"bodies that do not end", false, 1200, 50, halfBody},
		{"answered, and kept open", false, 1200, 50, noReader},
		{"TLS that is no TLS", true, 600, 50, halfBody},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() { // with the race detector a crowd costs seconds
				test.n /= 4
			}
			s := newEntrance(t, test.secure)
			strangers := newCrowd(t, s.address, test.n, manySources(t, test.sources), test.do)
			worst := time.Duration(0)
			try := func(what, source, method, path string, lines ...string) {
				t.Helper()
				a, err := s.ask(source, method, path, lines...)
				if err != nil || a.status != http.StatusOK || a.took > patience {
					t.Errorf("%s: %d after %s, %v", what, a.status, a.took, err)
				}
				worst = max(worst, a.took)
			}
			for range 10 {
				try("the owner", "127.0.0.1", "GET", "/v1/x", s.bearer("owner"))
				try("another token", "127.0.0.1", "GET", "/v1/x", s.bearer("reader"))
				try("a sender", "127.0.0.1", "POST", "/v1/hooks/x", "Signed: yes")
				try("the next stranger", "127.0.0.1", "GET", "/")
			}
			if n := s.door.strangers.Held(); n > MostStrangers {
				t.Errorf("%d strangers are inside", n)
			}
			t.Logf("%d strangers, the longest answer took %s", test.n, worst.Round(time.Millisecond))
			strangers.leave()
			filestest.Until(t, "every place is free", func() bool { return s.door.strangers.Held()+s.door.within.Held() == 0 }, nil)
		})
	}
}

// Connections that are opened and closed as fast as they can be.
func TestF406ChurnKeepsNobodyOut(t *testing.T) {
	s := newEntrance(t, false)
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				if c, err := dialFrom(ctx, "127.0.0.1", s.address); err == nil {
					if i%2 == 0 {
						_, _ = io.WriteString(c, "GET / HT")
					}
					_ = c.Close()
				}
			}
		})
	}
	for range 50 {
		if a, err := s.ask("127.0.0.1", "GET", "/v1/x", s.bearer("owner")); err != nil || a.status != 200 || a.took > patience {
			t.Errorf("%d after %s, %v", a.status, a.took, err)
		}
	}
	stop()
	all.Wait()
	filestest.Until(t, "every place is free", func() bool { return s.door.strangers.Held()+s.door.within.Held() == 0 }, nil)
	filestest.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before }, nil)
}

// A token has its bound, below, at and beyond it, and takes nothing from others. What is idle gives way to the next one.
func TestF406ATokenTakesNotAllConnections(t *testing.T) {
	s := newEntranceOf(t, false, func(d *Door) {
		d.within = Places{What: "connections", Most: 40, Each: 8, Favoured: 30, Shared: 32, Kept: 4}
	})
	var open []net.Conn
	keep := func(token string) (answered, error) { // a connection that is answered, and stays
		c, err := s.dial("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		return s.say(c, "GET", "/v1/x", "", s.bearer(token))
	}
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for i := range 100 { // idle ones, far beyond each bound
		if a, err := keep("reader"); err != nil || a.status != 200 {
			t.Fatalf("idle connection %d: %d %s, %v", i, a.status, a.body, err)
		}
	}
	filestest.Until(t, "those beyond the bound are closed, and the others between two requests", func() bool {
		s.door.within.mu.Lock()
		defer s.door.within.mu.Unlock()
		idle := 0
		for e := s.door.within.order.Front(); e != nil; e = e.Next() {
			if !e.Value.(*Place).busy {
				idle++
			}
		}
		return idle == 8 && s.door.within.order.Len() == 8
	}, nil)
	busy := func(token string) net.Conn { // a request that is not answered yet
		c, err := s.dial("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		if _, err := fmt.Fprintf(c, "GET /v1/held HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", s.address, s.bearer(token)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 8 {
		busy("reader")
		<-s.held
	}
	a, err := s.ask("127.0.0.1", "GET", "/v1/x", s.bearer("reader"))
	if err != nil || a.status != 429 || a.code != "rate_limited" || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "one client may have 8 connections here at once") {
		t.Errorf("beyond the bound: %d %s %v, %v", a.status, a.body, a.header, err)
	}
	for _, token := range []string{"owner", "other", "worker"} {
		if a, err := s.ask("127.0.0.1", "GET", "/v1/x", s.bearer(token)); err != nil || a.status != 200 {
			t.Errorf("%s: %d %s, %v", token, a.status, a.body, err)
		}
	}
	filestest.Until(t, "those that were answered have left", func() bool { return s.door.within.Held() == 8 }, nil)
	// The workers of a fleet share a token; they take what there is but for what is kept for the owner.
	for range 28 {
		busy("worker")
		<-s.held
	}
	if a, err := s.ask("127.0.0.1", "GET", "/v1/x", s.bearer("other")); err != nil || a.status != 429 || !strings.Contains(a.body, "all 36 connections are taken that are not kept") {
		t.Errorf("where all are taken: %d %s, %v", a.status, a.body, err)
	}
	if a, err := s.ask("127.0.0.1", "GET", "/v1/x", s.bearer("owner")); err != nil || a.status != 200 {
		t.Errorf("the owner: %d %s, %v", a.status, a.body, err)
	}
	if a, err := s.ask("127.0.0.1", "GET", "/"); err != nil || a.status != 200 {
		t.Errorf("a stranger: %d %s, %v", a.status, a.body, err)
	}
	close(s.release)
	for _, c := range open {
		_ = c.Close()
	}
	filestest.Until(t, "every place is free", func() bool { return s.door.strangers.Held()+s.door.within.Held() == 0 }, nil)
	if a, err := s.ask("127.0.0.1", "GET", "/v1/x", s.bearer("reader")); err != nil || a.status != 200 {
		t.Errorf("afterwards: %d %s, %v", a.status, a.body, err)
	}
}

// A connection that showed something stays while strangers come and go; one that showed nothing gives way, and one peer
// has its bound until it has shown something.
func TestF406WhoShowedATokenStays(t *testing.T) {
	s := newEntranceOf(t, false, func(d *Door) {
		d.strangers = Places{What: "connections", Most: 20, Each: 5, Kept: 5, Spared: 5}
	})
	known := map[string]net.Conn{}
	for name, line := range map[string]string{"token": s.bearer("reader"), "signature": "Signed: yes", "nothing": "X: y"} {
		c, err := s.dial("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if a, err := s.say(c, "POST", "/v1/hooks/x", "", line); name != "token" && (err != nil || a.status != 200) {
			t.Fatalf("%s: %d, %v", name, a.status, err)
		} else if name == "token" {
			if a, err := s.say(c, "GET", "/v1/x", "", line); err != nil || a.status != 200 {
				t.Fatalf("%s: %d, %v", name, a.status, err)
			}
		}
		known[name] = c
	}
	strangers := newCrowd(t, s.address, 300, 1, idle)
	defer strangers.leave()
	filestest.Until(t, "the one that showed nothing gives way", func() bool {
		c := known["nothing"]
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}, nil)
	for _, name := range []string{"token", "signature"} {
		if a, err := s.say(known[name], "POST", "/v1/hooks/x", "", "Signed: yes"); err != nil || a.status != 200 {
			t.Errorf("%s: it does not stay: %d %v", name, a.status, err)
		}
	}
	if n := s.door.strangers.Held(); n > 20 || n <= 5 { // the peer is known by now: the bound of all is what binds it
		t.Errorf("%d strangers of a known peer", n)
	}
	other := newEntranceOf(t, false, func(d *Door) {
		d.strangers = Places{What: "connections", Most: 20, Each: 5, Kept: 5, Spared: 5}
	})
	for _, n := range []int{4, 5, 6, 50} {
		strangers := newCrowd(t, other.address, n, 1, idle)
		filestest.Until(t, fmt.Sprint("of ", n, " strangers as many as may are in"), func() bool { return other.door.strangers.Held() == min(n, 5) }, nil)
		strangers.leave()
		filestest.Until(t, "none is", func() bool { return other.door.strangers.Held() == 0 }, nil)
	}
}

// Requests in a row on one connection are one place, however many there are.
func TestPipelinedRequestsAreOnePlace(t *testing.T) {
	s := newEntrance(t, false)
	c, err := s.dial("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const n = 500
	go func() {
		_, _ = io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: "+s.address+"\r\n\r\n", n-1)+"GET /v1/x HTTP/1.1\r\nHost: "+s.address+"\r\n\r\nGET / HTTP/1.1\r\nHost: "+s.address+"\r\n\r\n")
	}()
	from := bufio.NewReader(c)
	for i := range n {
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(i, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 200, false: 401}[i < n-1]; resp.StatusCode != want {
			t.Fatalf("answer %d: %d", i, resp.StatusCode)
		}
		if held := s.door.strangers.Held(); held > 1 {
			t.Fatalf("%d places", held)
		}
	}
	if _, err := http.ReadResponse(from, nil); err == nil {
		t.Error("what came behind a refusal was answered")
	}
}

// A client that does not read its answer holds a place, and nothing else.
func TestSlowReadersKeepNobodyOut(t *testing.T) {
	s := newEntrance(t, false)
	var open []net.Conn
	for range 20 {
		c, err := s.dial("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET /v1/long HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", s.address, s.bearer("reader")); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	filestest.Until(t, "they are inside", func() bool { return s.door.within.Held() == len(open) }, nil)
	if a, err := s.ask("127.0.0.1", "GET", "/v1/x", s.bearer("other")); err != nil || a.status != 200 || a.took > patience {
		t.Errorf("%d after %s, %v", a.status, a.took, err)
	}
}

// A proxy that is trusted says who is behind it; anybody else says nothing.
func TestWhoIsBehindAProxy(t *testing.T) {
	for _, test := range []struct {
		name    string
		trusted []string
		says    string
		want    Peer
	}{
		{"trusted", []string{"127.0.0.1"}, "X-Forwarded-For: 198.51.100.9, 192.0.2.1", "192.0.2.1"},
		{"trusted, in the standard form", []string{"127.0.0.0/8"}, "Forwarded: for=192.0.2.1", "192.0.2.1"},
		{"trusted, and silent", []string{"127.0.0.1"}, "X: y", ""},
		{"not trusted", nil, "X-Forwarded-For: 192.0.2.1", "127.0.0.1"},
		{"another one is trusted", []string{"127.0.0.2"}, "X-Forwarded-For: 192.0.2.1", "127.0.0.1"},
	} {
		s := newEntrance(t, false, test.trusted...)
		a, err := s.ask("127.0.0.1", "GET", "/", test.says)
		if err != nil || a.body != fmt.Sprintf("%q", test.want) {
			t.Errorf("%s: %s, want %q, %v", test.name, a.body, test.want, err)
		}
	}
}

// The bounds of a peer are those of a client behind a trusted proxy, also where the proxy uses its connections again: it has
// none itself, and a connection is that of the client whose request it carries.
func TestTheBoundsOfAPeerBehindAProxy(t *testing.T) {
	s := newEntranceOf(t, false, func(d *Door) {
		d.strangers = Places{What: "connections", Most: 40, Each: 5, Kept: 8, Spared: 5}
	}, "127.0.0.1")
	send := func(client string) net.Conn { // a request whose body does not come
		c, err := s.dial("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "POST /v1/hooks/x HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nContent-Length: 9\r\n\r\n", s.address, client); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range 20 {
		open = append(open, send("192.0.2.1"))
	}
	count := func(name string) int {
		s.door.strangers.mu.Lock()
		defer s.door.strangers.mu.Unlock()
		return s.door.strangers.held[name]
	}
	filestest.Until(t, "one client has its bound", func() bool { return count("192.0.2.1") == 5 && count("") == 0 }, nil)
	// The proxy's own connection, which it keeps: a token, then a stranger, then an event.
	c, err := s.dial("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if a, err := s.say(c, "GET", "/v1/x", "", "X-Forwarded-For: 192.0.2.7", s.bearer("reader")); err != nil || a.status != 200 {
		t.Fatalf("%d, %v", a.status, err)
	}
	if n := s.door.within.Held(); n != 1 {
		t.Errorf("%d are inside", n)
	}
	if a, err := s.say(c, "GET", "/", "", "X-Forwarded-For: 192.0.2.8"); err != nil || a.status != 200 || a.body != `"192.0.2.8"` {
		t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	if n := s.door.within.Held(); n != 0 || count("192.0.2.8") != 1 {
		t.Errorf("a stranger is inside on the connection of another client: %d, %d", n, count("192.0.2.8"))
	}
	if a, err := s.say(c, "POST", "/v1/hooks/x", "", "X-Forwarded-For: 192.0.2.9", "Signed: yes"); err != nil || a.status != 200 {
		t.Fatalf("%d, %v", a.status, err)
	}
	if !s.door.known.Has("192.0.2.9", time.Now()) || s.door.known.Has("192.0.2.8", time.Now()) || s.door.known.Has("127.0.0.1", time.Now()) {
		t.Error("the wrong peers are known")
	}
}

// Half of the files that may be open are for the store.
func TestConnectionsLeaveFilesForTheStore(t *testing.T) {
	for files, want := range map[uint64]int{0: 64, 64: 64, 128: 64, 130: 65, 1024: 512, 4606: 2303, 4608: 2304, 4610: 2304, 1 << 20: 2304, ^uint64(0): 2304} {
		if got := placesFor(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
}

// On a connection that showed nothing the next request comes soon, also where it has begun with less than a word.
func TestAStrangerIsNotWaitedForLong(t *testing.T) {
	for _, test := range []struct {
		name, token, begin string
		within             time.Duration
	}{
		{"a stranger", "", "", StrangerIdle},
		{"a stranger who sends three bytes", "", "GET", StrangerIdle},
		{"a stranger who drips headers", "", "GET / HTTP/1.1\r\n", HeaderTime},
		{"one with a token", "owner", "", IdleTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				door := NewDoor(nil, nil)
				l := pipes{make(chan net.Conn, 1)}
				server := Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if test.token != "" {
						if err := Admit(r, Holder{Name: test.token}); err != nil {
							t.Error(err)
						}
					}
				}), nil)
				done := make(chan error, 1)
				go func() { done <- server.Serve(door.listen(l)) }()
				mine, theirs := net.Pipe()
				l.conns <- theirs
				if _, err := io.WriteString(mine, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				if _, err := http.ReadResponse(bufio.NewReader(mine), nil); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if _, err := io.WriteString(mine, test.begin); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, mine)
				if d := time.Since(begun); d < test.within-time.Second || d > test.within+time.Second {
					t.Errorf("it was waited for %s", d)
				}
				_ = mine.Close()
				close(l.conns)
				<-done
				_ = server.Close()
				if n := door.strangers.Held() + door.within.Held(); n != 0 {
					t.Errorf("%d places are held", n)
				}
			})
		})
	}
}

// An archive comes as slowly as it likes above a rate; what the server does between costs the client nothing.
func TestALongBodyHasARate(t *testing.T) {
	for _, test := range []struct {
		name    string
		pieces  int
		size    int
		every   time.Duration
		handles time.Duration // the server, with each piece
		comes   bool
	}{
		{"a byte a second", 1000, 1, time.Second, 0, false},
		{"a byte each 29 s", 100, 1, 29 * time.Second, 0, false},
		{"below the rate", 1000, bodyRate - 200, time.Second, 0, false},
		{"at the rate", 1000, bodyRate, time.Second, 0, true},
		{"pauses within the time", 2, 1, 14 * time.Second, 0, true},
		{"pauses beyond the time", 3, 1, 14 * time.Second, 0, false},
		{"pauses that the pieces are worth", 100, 15 * bodyRate, 14 * time.Second, 0, true},
		{"a server that is slow", 100, 1, 0, time.Minute, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mine, theirs := net.Pipe()
				var sends sync.WaitGroup
				defer sends.Wait()
				defer mine.Close()
				sends.Go(func() {
					for range test.pieces {
						<-time.After(test.every)
						if _, err := mine.Write(make([]byte, test.size)); err != nil {
							return
						}
					}
					_ = mine.Close()
				})
				p := &pieces{ReadCloser: theirs, left: bodyTime, until: func(at time.Time) { _ = theirs.SetReadDeadline(at) }}
				var err error
				n, b := 0, make([]byte, 64<<10)
				for err == nil {
					var m int
					m, err = p.Read(b)
					n += m
					<-time.After(test.handles)
				}
				_ = theirs.Close()
				if (errors.Is(err, io.EOF) && n == test.pieces*test.size) != test.comes {
					t.Errorf("%d of %d bytes came: %v", n, test.pieces*test.size, err)
				}
			})
		})
	}
}
