package guard

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"wf/protocol"
)

func TestEndpointsAreRead(t *testing.T) {
	for _, test := range []struct {
		in, want string
		loopback bool
	}{
		{"unix", "unix:/run/x.sock", true}, {"unix:/a/b", "unix:/a/b", true}, {"tcp", DefaultTCP, true},
		{"8765", "127.0.0.1:8765", true}, {"127.0.0.1:0", "127.0.0.1:0", true}, {"[::1]:80", "[::1]:80", true},
		{"localhost:80", "localhost:80", true}, {":80", ":80", false}, {"0.0.0.0:80", "0.0.0.0:80", false},
		{"wf.example.org:443", "wf.example.org:443", false}, {"127.0.0.1.evil.example:1", "127.0.0.1.evil.example:1", false},
		{"", "", false}, {"unix:", "", false}, {"x", "", false}, {"127.0.0.1", "", false}, {"127.0.0.1:99999", "", false}, {"http://x:1", "", false},
	} {
		e, err := ParseEndpoint(test.in, "/run/x.sock")
		if test.want == "" {
			if !errors.Is(err, protocol.ErrUsage) {
				t.Errorf("%q: %v", test.in, err)
			}
			continue
		}
		if err != nil || e.String() != test.want || e.Loopback() != test.loopback {
			t.Errorf("%q: %s %v %v", test.in, e, e.Loopback(), err)
		}
	}
}

// certificate makes one for 127.0.0.1.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestB11NothingListensBeyondLoopbackWithoutTLSAndAToken(t *testing.T) {
	keys, err := OpenKeys(filepath.Join(t.TempDir(), "token"), nil)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := LoadTLS(certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, address string
		secure        *tls.Config
		keys          *Keys
		refused       bool
	}{
		{"every interface, neither", "0.0.0.0:0", nil, nil, true},
		{"every interface, a token alone", "0.0.0.0:0", nil, keys, true},
		{"every interface, TLS alone", ":0", secure, nil, true},
		{"every interface of IPv6, a token alone", "[::]:0", nil, keys, true},
		{"a name, a token alone", "wf.example.org:0", nil, keys, true},
		{"every interface, both", "0.0.0.0:0", secure, keys, false},
		{"loopback, no token", "127.0.0.1:0", nil, nil, true},
		{"loopback, TLS alone", "127.0.0.1:0", secure, nil, true},
		{"loopback, a token", "127.0.0.1:0", nil, keys, false},
	} {
		e, err := ParseEndpoint(test.address, "")
		if err != nil {
			t.Fatal(err)
		}
		l, err := e.Listen(t.Context(), test.secure, test.keys, nil, nil)
		switch {
		case test.refused && !errors.Is(err, protocol.ErrInsecure):
			t.Errorf("%s: %v", test.name, err)
		case !test.refused && err != nil:
			t.Errorf("%s: %v", test.name, err)
		}
		if l != nil {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOnlyTLS13IsSpoken(t *testing.T) {
	secure, err := LoadTLS(certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	for version, ok := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		client, server := net.Pipe()
		go func() {
			_ = tls.Server(server, secure).HandshakeContext(t.Context()) // the client judges
			_ = server.Close()
		}()
		c := tls.Client(client, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if err := c.HandshakeContext(t.Context()); (err == nil) != ok {
			t.Errorf("TLS %x: %v", version, err)
		}
		_ = client.Close()
	}
	if _, err := LoadTLS("no.pem", "no.key"); !errors.Is(err, protocol.ErrUsage) {
		t.Errorf("without files: %v", err)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	keys, err := OpenKeys(filepath.Join(t.TempDir(), "token"), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := (Endpoint{TCP: "127.0.0.1:0"}).Listen(t.Context(), nil, keys, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	address := first.Addr().String()
	if _, err := (Endpoint{TCP: address}).Listen(t.Context(), nil, keys, nil, nil); !errors.Is(err, protocol.ErrInUse) || !strings.Contains(err.Error(), address) {
		t.Errorf("%v", err)
	}
}

func TestHostsOfAListener(t *testing.T) {
	for _, test := range []struct {
		address net.Addr
		more    []string
		want    string
	}{
		{&net.UnixAddr{Name: "/x"}, nil, "wf localhost"},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, nil, "127.0.0.1:80 localhost:80 [::1]:80"},
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 80}, nil, "[::1]:80 localhost:80 127.0.0.1:80"},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9}, []string{"WF.example.org"}, "10.0.0.1:9 wf.example.org:9"},
		{&net.TCPAddr{IP: net.IPv4zero, Port: 443}, []string{"wf.example.org", "x:1"}, "wf.example.org:443 wf.example.org x:1"},
	} {
		if got := strings.Join(HostsOf(addressed{test.address}, test.more), " "); got != test.want {
			t.Errorf("%v: %s, want %s", test.address, got, test.want)
		}
	}
}

// addressed is a listener that has an address and nothing else.
type addressed struct{ at net.Addr }

func (a addressed) Addr() net.Addr            { return a.at }
func (a addressed) Accept() (net.Conn, error) { return nil, io.EOF }
func (a addressed) Close() error              { return nil }

// pipes is a listener without a network, so that time can be made up.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A client that sends its headers, or its body, byte by byte is cut off: it holds a connection
// for seconds, not for ever.
func TestSlowlorisIsCutOff(t *testing.T) {
	for _, test := range []struct {
		name, begin string
		within      time.Duration
	}{
		{"headers that never end", "GET / HTTP/1.1\r\nHost: " + here + "\r\n", HeaderTime},
		{"nothing at all", "", HeaderTime},
		{"a body that never ends", "POST / HTTP/1.1\r\nHost: " + here + "\r\nContent-Length: 900\r\n\r\n", bodyTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &Guard{Hosts: []string{here}, Peer: Identity{Scopes: AllScopes}}
				server := Server(g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err == nil {
						t.Error("the whole body came")
					}
				})), nil)
				l := pipes{make(chan net.Conn, 1)}
				mine, theirs := net.Pipe()
				l.conns <- theirs
				done := make(chan error, 1)
				go func() { done <- server.Serve(l) }()
				begun := time.Now()
				var drips sync.WaitGroup
				drips.Go(func() {
					if _, err := io.WriteString(mine, test.begin); err != nil {
						return
					}
					for i := 0; test.begin != ""; i++ {
						time.Sleep(time.Second)
						if _, err := fmt.Fprintf(mine, "X-%d: y\r\n", i); err != nil {
							return
						}
					}
				})
				if _, err := io.Copy(io.Discard, mine); err != nil {
					t.Log(err)
				}
				if d := time.Since(begun); d > test.within+time.Second {
					t.Errorf("it held the connection for %s", d)
				}
				_ = mine.Close()
				drips.Wait()
				close(l.conns)
				<-done
				_ = server.Close()
			})
		})
	}
}

func TestOversizedRequestsAreRefused(t *testing.T) {
	s := newStage(t)
	h := httptest.NewUnstartedServer(nil)
	h.Config = Server(s.handler, slog.New(slog.DiscardHandler))
	h.Start()
	defer h.Close()
	address := h.Listener.Addr().String()
	send := func(request string) string {
		t.Helper()
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err != nil {
			t.Log(err) // refused before all of it was sent
		}
		status, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(status)
	}
	auth := "Host: " + here + "\r\nAuthorization: Bearer " + s.token + "\r\n"
	for _, test := range []struct{ name, request, want string }{
		{"a header of 32 KiB", "GET / HTTP/1.1\r\n" + auth + "X: " + strings.Repeat("x", 32<<10) + "\r\n\r\n", "431"},
		{"many headers", "GET / HTTP/1.1\r\n" + auth + strings.Repeat("X: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n", 1000) + "\r\n", "431"},
		{"a long address", "GET /" + strings.Repeat("x", 32<<10) + " HTTP/1.1\r\n" + auth + "\r\n", "431"},
		{"a body over the limit", "POST /v1/runs HTTP/1.1\r\n" + auth + "Content-Length: 1001\r\n\r\n" + strings.Repeat("x", 1001), "413"},
		{"a body over the limit in chunks", "POST /v1/runs HTTP/1.1\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("x", 1001) + "\r\n0\r\n\r\n", "413"},
		{"no Host", "GET / HTTP/1.0\r\n\r\n", "421"},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: " + here + "\r\n" + auth + "\r\n", "400"},
		{"a request within the limits", "POST /v1/runs HTTP/1.1\r\n" + auth + "Content-Length: 1000\r\nConnection: close\r\n\r\n" + strings.Repeat("x", 1000), "200"},
	} {
		if got := send(test.request); !strings.Contains(got, " "+test.want+" ") {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// Whoever opens more connections than a listener takes waits until one is closed; to close the
// listener does not wait for that.
func TestConnectionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := pipes{make(chan net.Conn, 3)}
		for range 3 {
			_, theirs := net.Pipe()
			inner.conns <- theirs
		}
		l := limit(inner, 2)
		var open []net.Conn
		for range 2 {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		third := make(chan net.Conn, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
			}
			third <- c
		}()
		synctest.Wait()
		if len(third) > 0 {
			t.Error("a third connection was taken beside two")
		}
		if err := errors.Join(open[0].Close(), open[0].Close()); err != nil { // once is one place
			t.Error(err)
		}
		<-third
		fourth := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			fourth <- err
		}()
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-fourth; !errors.Is(err, net.ErrClosed) {
			t.Errorf("accepting from a closed listener: %v", err)
		}
	})
}

func dial(t *testing.T, path string) error {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(context.Background(), "unix", path)
	if err == nil {
		err = c.Close()
	}
	return err
}
