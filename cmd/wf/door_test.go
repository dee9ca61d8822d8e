package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"wf/files/filestest"
	"wf/protocol"
)

// 80 strangers whose events do not end and 2,000 idle ones, who come back when they are turned out, beside 100 signed events
// a second: each is taken, and its run is in the store. The owner's requests are answered meanwhile. It lasts for a second,
// and with WF_FAULTS=1 for the 30 of the figure, with its 200 ms for the owner.
//
// The events are those of ten webhooks: what one of them may have in a second is a bound behind the signature.
func TestF406StrangersAndASignedSender(t *testing.T) {
	const hooks, slow, idle = 10, 80, 2000
	for _, test := range []struct {
		name    string
		sources int // of the strangers; the sender is at the first of them
		nginx   bool
		trusted bool
	}{
		{"from one source", 1, false, false},
		{"from 50 sources", 50, false, false},
		{"through nginx", 50, true, true},
		{"through nginx that nobody declared", 1, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if runtime.GOOS != "linux" && test.sources > 1 {
				t.Skip("127.0.0.2 is no address of this system")
			}
			lasts, patience := time.Second, 3*time.Second
			if os.Getenv("WF_FAULTS") != "" {
				lasts, patience = 30*time.Second, 200*time.Millisecond
			}
			dir := t.TempDir()
			t.Setenv("HOOK_KEY", hookKey)
			for i := range hooks {
				write(t, dir, fmt.Sprintf("h%d.yaml", i), fmt.Sprintf("wf: 1\nname: h%d\nsecrets: [HOOK_KEY]\non: {webhook: {kind: hmac, secret: HOOK_KEY}}\nroles: {a: {set: {x: 1}}}\n", i))
			}
			args := []string{"--listen", "unix", "--listen", "127.0.0.1:0"}
			var proxy string
			if test.nginx {
				program, err := exec.LookPath("nginx")
				if err != nil {
					program, err = exec.LookPath("/usr/sbin/nginx")
				}
				if err != nil {
					t.Skip("nginx is not installed: what the manual says of it is not tried")
				}
				proxy = freeAddress(t)
				behind := freeAddress(t)
				args = []string{"--listen", "unix", "--listen", behind, "--host", proxy}
				if test.trusted {
					args = append(args, "--trusted-proxy", "127.0.0.1")
				}
				s := startServe(t, dir, args...)
				beNginx(t, program, proxy, behind)
				strangersBeside(t, s, proxy, slow, idle, hooks, test.sources, lasts, patience)
				if c, resp, err := websocket.Dial(t.Context(), "ws://"+proxy+"/v1/replay", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + s.token()}}}); err != nil {
					t.Errorf("a WebSocket through nginx: %+v, %v", resp, err)
				} else {
					c.CloseNow()
				}
				if _, err := asks(t.Context(), "127.0.0.9", proxy, "GET", "/v1/runs", "Authorization: Bearer wrong"); err != nil {
					t.Error(err)
				}
				awaitText(t, "remote="+map[bool]string{true: "127.0.0.9 ", false: "127.0.0.1:"}[test.trusted], s.err) // the client, or nginx
				if told := strings.Contains(s.err.String(), "remote=127.0.0.9 "); told != test.trusted {
					t.Errorf("the log names the client: %v", told)
				}
				return
			}
			s := startServe(t, dir, args...)
			strangersBeside(t, s, strings.TrimPrefix(s.said.Listen[1].URL, "http://"), slow, idle, hooks, test.sources, lasts, patience)
		})
	}
}

// token is that of the owner.
func (s *served) token() string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "state", "wf", "*.token"))
	if err != nil || len(files) != 1 {
		files, err = filepath.Glob(filepath.Join(s.dir, "state", "wf", "*", "*.token"))
	}
	if err != nil || len(files) != 1 {
		s.t.Fatalf("token files: %v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Fields(string(b))[0]
}

// strangersBeside has strangers come to a server that takes events and answers its owner.
func strangersBeside(t *testing.T, s *served, address string, slow, idle, hooks, sources int, lasts, patience time.Duration) {
	t.Helper()
	s.ready()
	x := &sender{t: t, s: s, address: address, hooks: hooks, runs: map[protocol.RunID]bool{}}
	x.send("alone", lasts/4)
	ctx, end := context.WithCancel(t.Context())
	var strangers sync.WaitGroup
	defer strangers.Wait()
	defer end()
	var turnedOut atomic.Int64
	var here sync.WaitGroup
	for i := range slow + idle {
		arrived := sync.OnceFunc(here.Done)
		here.Add(1)
		strangers.Go(func() {
			defer arrived()
			for ctx.Err() == nil {
				c, err := dialsFrom(ctx, fmt.Sprintf("127.0.0.%d", 1+i%sources), address)
				if err == nil {
					arrived()
					over := context.AfterFunc(ctx, func() { _ = c.Close() })
					if i < slow {
						drips(ctx, c, fmt.Sprintf("POST %sh0 HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\n{", protocol.WebhookPath, address))
					} else {
						_, _ = io.Copy(io.Discard, c) // until one end closes it
					}
					over()
					_ = c.Close()
					turnedOut.Add(1)
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
	here.Wait()
	if worst := x.send("beside strangers", lasts); worst > patience {
		t.Errorf("the owner waited for %s", worst)
	}
	t.Logf("%d strangers were turned out", turnedOut.Load())
	filestest.Until(t, "each promised run is in the store", func() bool { // an event may wait on disk for a moment
		for _, run := range s.runs() {
			delete(x.runs, run)
		}
		return len(x.runs) == 0
	}, nil)
}

// sender sends 100 signed events a second, while the owner asks for something.
type sender struct {
	t       *testing.T
	s       *served
	address string
	hooks   int
	sent    int
	runs    map[protocol.RunID]bool // that were promised
}

// send sends for a while, and says how long the owner waited at worst.
func (x *sender) send(when string, lasts time.Duration) time.Duration {
	t := x.t
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	took, statuses := []time.Duration{}, map[string]int{}
	events := time.NewTicker(10 * time.Millisecond)
	defer events.Stop()
	token := x.s.token()
	begun, first := time.Now(), x.sent
	all.Go(func() { // the owner, on a new connection each time
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for ; time.Since(begun) < lasts; <-again.C {
			asked := time.Now()
			status, err := asks(t.Context(), "127.0.0.1", x.address, "GET", "/v1/info", "Authorization: Bearer "+token)
			mu.Lock()
			if took = append(took, time.Since(asked)); err != nil || status != 200 {
				t.Errorf("the owner: %d, %v", status, err)
			}
			mu.Unlock()
		}
	})
	kept := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}} // half of the events; the others have a new connection each
	defer kept.CloseIdleConnections()
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for ; time.Since(begun) < lasts; x.sent++ {
		<-events.C
		n := x.sent
		all.Go(func() {
			by := *x.s
			by.client = map[bool]*http.Client{true: kept, false: fresh}[n%4 < 2]
			by.said.Listen = slices.Clone(by.said.Listen)
			by.said.Listen[1].URL = "http://" + x.address
			id, when, body := rand.Text(), fmt.Sprint(time.Now().Unix()), fmt.Sprintf(`{"n":%d}`, n)
			a, err := by.deliver(fmt.Sprint("h", n%x.hooks), body, "webhook-id: "+id, "webhook-timestamp: "+when,
				"webhook-signature: v1,"+base64.StdEncoding.EncodeToString(hmacOf(hookKey, id+"."+when+"."+body)))
			mu.Lock()
			defer mu.Unlock()
			statuses[fmt.Sprint(a.status, " ", a.Code)]++
			if err != nil {
				t.Errorf("event %d: %v", n, err)
				return
			}
			x.runs[a.ID] = true
		})
	}
	all.Wait()
	if n := x.sent - first; statuses["202 "] != n || len(x.runs) != x.sent {
		t.Errorf("%s: of %d signed events: %v; %d runs of %d", when, n, statuses, len(x.runs), x.sent)
	}
	slices.Sort(took)
	worst := took[len(took)-1]
	t.Logf("%s: %d events in %s; the owner's %d requests took %s in the middle and %s at worst", when, x.sent-first, time.Since(begun).Round(100*time.Millisecond),
		len(took), took[len(took)/2].Round(100*time.Microsecond), worst.Round(100*time.Microsecond))
	return worst
}

// drips sends the beginning of a request, and then a byte a second until the other end has had enough.
func drips(ctx context.Context, c net.Conn, begin string) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, c)
	}()
	_, err := io.WriteString(c, begin)
	for err == nil {
		select {
		case <-over:
			return
		case <-ctx.Done():
			_ = c.Close()
			<-over
			return
		case <-time.After(time.Second):
			_, err = io.WriteString(c, "x")
		}
	}
	_ = c.Close()
	<-over
}

func dialsFrom(ctx context.Context, source, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 10 * time.Second}
	return d.DialContext(ctx, "tcp", address)
}

// asks sends a request from a source, on a connection of its own.
func asks(ctx context.Context, source, address, method, path string, lines ...string) (status int, err error) {
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return dialsFrom(ctx, source, address)
	}}}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
	if err != nil {
		return 0, err
	}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// freeAddress is one of loopback at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

var nginxBlock = regexp.MustCompile("(?s)<!-- nginx -->\n```nginx\n(.*?)```")

// beNginx runs nginx as the manual has it, but for the addresses and the certificate.
func beNginx(t *testing.T, program, address, behind string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	found := nginxBlock.FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/serve.md has no block for nginx")
	}
	block := regexp.MustCompile(`(?m)^ *ssl_.*\n`).ReplaceAllString(string(found[1]), "")
	for old, now := range map[string]string{"listen 443 ssl;": "listen " + address + ";", "http://127.0.0.1:8765;": "http://" + behind + ";"} {
		if !strings.Contains(block, old) {
			t.Fatalf("the block for nginx does not have %q", old)
		}
		block = strings.Replace(block, old, now, 1)
	}
	dir := t.TempDir()
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	config := fmt.Sprintf("daemon off; pid %[1]s/pid; error_log %[1]s/log; worker_processes 1; worker_rlimit_nofile 8192; %[2]s\nevents { worker_connections 4096; }\nhttp {\naccess_log off; client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;\n%[3]s\n}\n", dir, user, block)
	write(t, dir, "nginx.conf", config)
	cmd := exec.Command(program, "-p", dir, "-e", filepath.Join(dir, "log"), "-c", filepath.Join(dir, "nginx.conf"))
	var said safeBuffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is interrupted
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	})
	for {
		c, err := dialsFrom(t.Context(), "127.0.0.1", address)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-ended:
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("nginx does not run: %s%s", said.String(), log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
