package daemon_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"wf/daemon"
	"wf/hub/reply"
	"wf/protocol"
)

// No path leads on to another one, whatever a client puts into it: not at a port, not at a socket, not at a hub. One that is not clean is answered before
// anything else looks at it, credentials and webhooks included.
func TestF415NoPathIsARedirect(t *testing.T) {
	h := newHouse(t, ownersToken+"\n")
	doors := map[string][2]string{"port": {"tcp", strings.TrimPrefix(h.url, "http://")}, "socket": {"unix", strings.TrimPrefix(h.socket, "unix:")}}
	hub, err := daemon.OpenHub(t.Context(), daemon.HubOptions{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		ListenOptions: daemon.ListenOptions{Addresses: []string{"127.0.0.1:0"}, TokenFile: h.tokens}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Close(); err != nil {
			t.Error(err)
		}
	})
	where, err := hub.Where()
	if err != nil {
		t.Fatal(err)
	}
	doors["hub"] = [2]string{"tcp", strings.TrimPrefix(where.Listen[0].URL, "http://")}

	paths := []string{"/", "/v1", "/index.html", "/runs", "/assets", "/assets/app.js", "/healthz", "/metrics", "/v1/login", "/v1/runs", "/v1/memories", "/v1/memories/items",
		"/v1/runs/R1/steps/a/artifact", "/v1/hooks", "/v1/hooks/push", "/v1/replay", "/v1/agents", "/v1/queue"}
	clean := []string{"%s", "%s/", "%s?a=../b", "%s%%23"}
	odd := []string{"/%s", "//x%s", "/.%s", "/x/..%s", "%s/.", "%s/..", "%s//", "%s/./x", "%s/../v1/runs", "%s/%%2e%%2e/runs", "%s/%%2E", "%s/.%%2e/x", "%s%%2f..", "%s%%2F%%2Fx", "%s/a//b", "http://HOST%s/../runs"}
	for name, at := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := at[1]
			if at[0] == "unix" {
				host = "wf"
			}
			c, err := net.Dial(at[0], at[1])
			if err != nil {
				t.Fatal(err)
			}
			defer func() { c.Close() }()
			ask := func(method, path, credentials string) (int, http.Header, string) {
				t.Helper()
				_, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n%s\r\n", method, strings.ReplaceAll(path, "HOST", host), host, credentials)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
				if err != nil {
					t.Fatalf("%s %s: %v", method, path, err)
				}
				defer resp.Body.Close()
				b, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				if resp.Close {
					c.Close()
					if c, err = net.Dial(at[0], at[1]); err != nil {
						t.Fatal(err)
					}
				}
				return resp.StatusCode, resp.Header, string(b)
			}
			for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
				for _, credentials := range []string{"", "Authorization: Bearer " + ownersToken + "\r\n"} {
					for _, path := range paths {
						for _, form := range clean {
							p := fmt.Sprintf(form, path)
							if p == "//" || path == "/v1/replay" {
								continue
							}
							if status, header, _ := ask(method, p, credentials); status/100 == 3 || header.Get("Location") != "" {
								t.Errorf("%s %s: %d to %q", method, p, status, header.Get("Location"))
							}
						}
						for _, form := range odd {
							p := fmt.Sprintf(form, path)
							status, header, body := ask(method, p, credentials)
							var f reply.Failure
							if method != "HEAD" {
								if err := json.Unmarshal([]byte(body), &f); err != nil {
									t.Errorf("%s %s: %v", method, p, err)
								}
							}
							if status != http.StatusNotFound || header.Get("Location") != "" || method != "HEAD" && (f.Schema != reply.ErrorSchema || f.Code != protocol.ErrNotFound.Code) {
								t.Errorf("%s %s: %d to %q %+v", method, p, status, header.Get("Location"), f)
							}
						}
					}
				}
			}
		})
	}
	t.Cleanup(func() {
		for line := range strings.Lines(h.log.String()) {
			if _, name, ok := strings.Cut(line, " webhook="); ok && (strings.Contains(name, "..") || strings.Contains(name, "//")) {
				t.Error("a webhook was looked for by a path that is not clean: " + line)
			}
		}
	})
}
