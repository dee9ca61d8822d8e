package guard

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wf/hub/reply"
	"wf/protocol"
)

const here = "127.0.0.1:8765"

// stage is a guarded server that says who was let in.
type stage struct {
	t       *testing.T
	keys    *Keys
	token   string
	guard   *Guard
	handler http.Handler
	log     *strings.Builder
	now     time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, log: &strings.Builder{}, now: time.Date(2026, 1, 5, 4, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return s.now }
	var err error
	if s.keys, err = OpenKeys(filepath.Join(t.TempDir(), "keys", "token"), clock); err != nil {
		t.Fatal(err)
	}
	s.token = string(s.keys.list[0].secret)
	g := &Guard{Hosts: []string{here, "localhost:8765", "[::1]:8765"}, Origins: []string{"https://wf.example.org"}, Keys: s.keys,
		Public: func(r *http.Request) bool { return r.URL.Path == "/" },
		Log:    slog.New(slog.NewTextHandler(s.log, nil)), MaxBody: func(*http.Request) int64 { return 1000 }, now: clock}
	s.guard, s.handler = g, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if _, err := io.ReadAll(r.Body); err != nil {
				reply.Error(w, reply.BodyError(err))
				return
			}
		}
		id, _ := Of(r.Context())
		reply.JSON(w, http.StatusOK, map[string]any{"name": id.Name, "scopes": id.Scopes, "protocols": r.Header.Get("Sec-Websocket-Protocol")})
	}))
	return s
}

// ask sends a request with headers as "Name: value" and gives the status and the body.
func (s *stage) ask(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://"+here+target, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func codeOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var f reply.Failure
	if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if f.Code != "" && (f.Schema != reply.ErrorSchema || f.Message == "" || f.Fix == "") {
		t.Errorf("an error without a message or a fix: %s", w.Body)
	}
	return f.Code
}

// Each attack is refused with its own status, whatever credentials come with it.
func TestAttacksOverTheNet(t *testing.T) {
	for _, test := range []struct {
		name    string
		method  string
		target  string
		headers []string
		status  int
		code    string
	}{
		{"the owner", "GET", "/v1/runs", nil, 200, ""},
		{"the owner by another of its names", "GET", "/v1/runs", []string{"Host: localhost:8765"}, 200, ""},
		{"DNS rebinding: a foreign name that leads here", "GET", "/v1/runs", []string{"Host: evil.example:8765"}, 421, "misdirected"},
		{"DNS rebinding with an Origin that agrees", "GET", "/v1/runs", []string{"Host: evil.example:8765", "Origin: http://evil.example:8765"}, 421, "misdirected"},
		{"a name that begins like ours", "GET", "/v1/runs", []string{"Host: 127.0.0.1:8765.evil.example"}, 421, "misdirected"},
		{"our name without the port", "GET", "/v1/runs", []string{"Host: 127.0.0.1"}, 421, "misdirected"},
		{"a name below localhost", "GET", "/v1/runs", []string{"Host: x.localhost:8765"}, 421, "misdirected"},
		{"a foreign Host for the page, which needs no token", "GET", "/", []string{"Host: evil.example"}, 421, "misdirected"},
		{"a foreign Origin", "GET", "/v1/runs", []string{"Origin: https://evil.example"}, 403, "forbidden"},
		{"a foreign Origin on another port here", "POST", "/v1/runs", []string{"Origin: http://127.0.0.1:9999"}, 403, "forbidden"},
		{"an Origin of another scheme", "GET", "/v1/runs", []string{"Origin: https://" + here}, 403, "forbidden"},
		{"the null Origin of a sandboxed frame", "GET", "/v1/runs", []string{"Origin: null"}, 403, "forbidden"},
		{"two Origins", "GET", "/v1/runs", []string{"Origin: http://" + here, "Origin: https://evil.example"}, 403, "forbidden"},
		{"our Origin", "POST", "/v1/runs", []string{"Origin: http://" + here}, 200, ""},
		{"an Origin that the owner allows", "POST", "/v1/runs", []string{"Origin: https://wf.example.org", "Sec-Fetch-Site: cross-site"}, 200, ""},
		{"an image of another site", "GET", "/v1/runs", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403, "forbidden"},
		{"a script of another port of this machine", "GET", "/v1/runs", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}, 403, "forbidden"},
		{"a form of another site", "POST", "/v1/runs", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 403, "forbidden"},
		{"a link to the page", "GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 200, ""},
		{"a token in the query", "GET", "/v1/runs?token=abc", nil, 400, "bad_request"},
		{"a token in the query by another name", "GET", "/v1/runs?q=x&Access_Token=abc", nil, 400, "bad_request"},
		{"a code in the query", "GET", "/?code=abc", nil, 400, "bad_request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStage(t)
			w := s.ask(test.method, test.target, "{}", append(test.headers, "Authorization: Bearer "+s.token)...)
			if w.Code != test.status || codeOf(t, w) != test.code {
				t.Errorf("status %d %s, want %d %q", w.Code, w.Body, test.status, test.code)
			}
			if refused := strings.Contains(s.log.String(), "request refused"); refused != (test.code != "") {
				t.Errorf("logged: %q", s.log)
			}
			if strings.Contains(s.log.String()+w.Body.String(), s.token) {
				t.Error("the token was told")
			}
		})
	}
}

func TestTheTokenIsTheOnlyKey(t *testing.T) {
	s := newStage(t)
	for _, test := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"none", nil, 401},
		{"the right one", []string{"Authorization: Bearer " + s.token}, 200},
		{"the right one, in small letters", []string{"Authorization: bearer " + s.token}, 200},
		{"a wrong one", []string{"Authorization: Bearer " + newSecret()}, 401},
		{"a part of it", []string{"Authorization: Bearer " + s.token[:20]}, 401},
		{"an empty one", []string{"Authorization: Bearer "}, 401},
		{"another kind", []string{"Authorization: Basic " + s.token}, 401},
		{"as a cookie", []string{"Cookie: wf_session=" + s.token}, 401},
		{"as a subprotocol of what is no WebSocket", []string{"Sec-WebSocket-Protocol: wf.token." + s.token}, 401},
		{"as a subprotocol", []string{"Upgrade: websocket", "Sec-WebSocket-Protocol: wf.replay.v1, wf.token." + s.token}, 200},
		{"a wrong one as a subprotocol", []string{"Upgrade: websocket", "Sec-WebSocket-Protocol: wf.token.abc"}, 401},
	} {
		if w := s.ask("GET", "/v1/runs", "", test.headers...); w.Code != test.status {
			t.Errorf("%s: status %d %s, want %d", test.name, w.Code, w.Body, test.status)
		}
	}
	w := s.ask("GET", "/v1/runs", "", "Upgrade: websocket", "Sec-WebSocket-Protocol: wf.replay.v1, wf.token."+s.token)
	if !strings.Contains(w.Body.String(), `"protocols":"wf.replay.v1"`) {
		t.Errorf("the token was handed on as a subprotocol: %s", w.Body)
	}
	if w := s.ask("GET", "/v1/runs?note="+s.token, "", "Authorization: Bearer "+s.token); w.Code != 400 {
		t.Errorf("the token under any name in a query: status %d", w.Code)
	}
	if w := s.ask("GET", "/", ""); w.Code != 200 {
		t.Errorf("the page: status %d", w.Code)
	}
	if w := s.ask("GET", "/", "", "Authorization: Bearer wrong"); w.Code != 401 {
		t.Errorf("the page with a wrong token: status %d", w.Code)
	}
}

func TestARotatedTokenOpensNothing(t *testing.T) {
	s := newStage(t)
	login := s.login()
	bearer := "Authorization: Bearer " + s.token
	if w := s.ask("GET", "/v1/runs", "", bearer); w.Code != 200 {
		t.Fatal(w.Code)
	}
	fresh := newSecret()
	next := filepath.Join(t.TempDir(), "next")
	if err := os.WriteFile(next, []byte("# rotated\n"+fresh+"\n"+newSecret()+" read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, s.keys.Path()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, header string
		status       int
	}{{"the old token", bearer, 401}, {"its login", login, 401}, {"the new token", "Authorization: Bearer " + fresh, 200}} {
		if w := s.ask("GET", "/v1/runs", "", test.header); w.Code != test.status {
			t.Errorf("%s: status %d, want %d", test.name, w.Code, test.status)
		}
	}
	if err := os.Remove(s.keys.Path()); err != nil {
		t.Fatal(err)
	}
	if w := s.ask("GET", "/v1/runs", "", "Authorization: Bearer "+fresh); w.Code != 401 || !strings.Contains(s.log.String(), "the tokens cannot be read") {
		t.Errorf("without the file: status %d, log %s", w.Code, s.log)
	}
}

// What is open when a token is taken away, or may do less, ends, for a token as for its login.
func TestAnOpenStreamEndsWithItsCredentials(t *testing.T) {
	for _, after := range []struct{ name, file string }{
		{"taken out", newSecret() + "\n"}, {"may only read", "TOKEN read\n" + newSecret() + "\n"},
	} {
		t.Run(after.name, func(t *testing.T) {
			s := newStage(t)
			begun, causes := make(chan bool), make(chan error)
			g := &Guard{Hosts: []string{here}, Keys: s.keys, recheck: time.Millisecond, now: func() time.Time { return s.now }}
			s.guard, s.handler = g, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun <- true
				<-r.Context().Done()
				causes <- context.Cause(r.Context())
			}))
			for _, header := range []string{"Authorization: Bearer " + s.token, s.login()} {
				go s.ask("GET", "/v1/stream", "", header)
				<-begun
			}
			select {
			case err := <-causes:
				t.Fatalf("ended at once: %v", err)
			default:
			}
			if err := os.WriteFile(s.keys.Path(), []byte(strings.ReplaceAll(after.file, "TOKEN", s.token)), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := <-causes; !errors.Is(err, protocol.ErrUnauthorized) {
					t.Errorf("ended with %v", err)
				}
			}
		})
	}
}

func TestScopesAreBoundToTheToken(t *testing.T) {
	s := newStage(t)
	reader := newSecret()
	if err := os.WriteFile(s.keys.Path(), []byte(s.token+"\n"+reader+"  read  # a dashboard\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got struct{ Scopes []Scope }
	w := s.ask("GET", "/v1/runs", "", "Authorization: Bearer "+reader, "X-Scopes: admin")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Scopes) != 1 || got.Scopes[0] != Read {
		t.Errorf("%s %v", w.Body, err)
	}
	id := Identity{Name: "x", Scopes: got.Scopes}
	for scope, code := range map[Scope]string{Read: "", Run: "forbidden", Admin: "forbidden"} {
		err := Need(With(t.Context(), id), scope)
		if w := httptest.NewRecorder(); err != nil {
			if reply.Error(w, err); w.Code != 403 {
				t.Errorf("scope %s: %d", scope, w.Code)
			}
		} else if code != "" {
			t.Errorf("scope %s is allowed", scope)
		}
	}
	if w := httptest.NewRecorder(); true {
		if reply.Error(w, Need(t.Context(), Read)); w.Code != 401 {
			t.Errorf("without an identity: %d", w.Code)
		}
	}
}

func TestTokenFilesThatOthersReadAreRefused(t *testing.T) {
	for _, test := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"good", newSecret() + "\n", 0o600, ""},
		{"with scopes", newSecret() + " read run\n\n# x\n", 0o600, ""},
		{"of a group", newSecret(), 0o640, "others may read it"},
		{"empty", "\n", 0o600, "no token"},
		{"too short", "c2hvcnQ", 0o600, "line 1"},
		{"an unknown scope", newSecret() + " root", 0o600, `no scope "root"`},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := errors.Join(os.WriteFile(path, []byte(test.text), 0o600), os.Chmod(path, test.mode)); err != nil { // whatever the umask
			t.Fatal(err)
		}
		_, err := OpenKeys(path, nil)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "a", "token")
	if _, err := OpenKeys(path, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new token file: %v %v", info, err)
	}
}

// Wrong tokens are slowed down by peer; the owner at the same address still gets in, and requests
// without a token, which any web page can cause, do not count.
func TestFailuresAreLimited(t *testing.T) {
	s := newStage(t)
	for range 50 {
		if w := s.ask("GET", "/v1/runs", ""); w.Code != 401 {
			t.Fatalf("without a token: status %d", w.Code)
		}
	}
	statuses := map[int]int{}
	for range 30 {
		w := s.ask("GET", "/v1/runs", "", "Authorization: Bearer wrong")
		statuses[w.Code]++
		if w.Code == 429 && w.Header().Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	if statuses[401] != failBurst || statuses[429] != 30-failBurst {
		t.Errorf("statuses %v", statuses)
	}
	if w := s.ask("GET", "/v1/runs", "", "Authorization: Bearer "+s.token); w.Code != 200 {
		t.Errorf("the owner is locked out: %d", w.Code)
	}
	s.now = s.now.Add(failEvery)
	if w := s.ask("GET", "/v1/runs", "", "Authorization: Bearer wrong"); w.Code != 401 {
		t.Errorf("later: status %d", w.Code)
	}
	var f Failures
	for i := range 3 * maxPeers {
		f.Spend(Peer("h"+strings.Repeat("x", i%7)+time.Duration(i).String()), s.now)
	}
	if n, _ := f.peers.Held(); n > maxPeers {
		t.Errorf("%d hosts are remembered", n)
	}
}

func TestBrowsersAreToldToKeepOthersOut(t *testing.T) {
	s := newStage(t)
	for _, w := range []*httptest.ResponseRecorder{s.ask("GET", "/", ""), s.ask("GET", "/v1/runs", ""), s.ask("OPTIONS", "/v1/runs", "", "Origin: https://wf.example.org", "Access-Control-Request-Method: POST")} {
		h := w.Header()
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if h.Get(name) != want {
				t.Errorf("%s is %q", name, h.Get(name))
			}
		}
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("policy %q", h.Get("Content-Security-Policy"))
		}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("a CORS header: %s", name)
			}
		}
	}
}

// What is let in by a signature needs nothing else, and nothing else keeps it out; its server must be meant all the same.
func TestASignedRequestNeedsNoCredentials(t *testing.T) {
	s := newStage(t)
	signed := func(r *http.Request) bool { return r.Method == "POST" && strings.HasPrefix(r.URL.Path, "/v1/hooks/") }
	s.guard.Signed = signed
	for _, headers := range [][]string{nil, {"Origin: https://evil.example"}, {"Sec-Fetch-Site: cross-site"}, {"Authorization: Bearer wrong"}, {"Cookie: wf=1"}} {
		if w := s.ask("POST", "/v1/hooks/push", "x", headers...); w.Code != 200 {
			t.Errorf("%v: %d", headers, w.Code)
		}
		if w := s.ask("POST", "/v1/runs", "{}", headers...); w.Code == 200 {
			t.Errorf("%v: another path is let in", headers)
		}
	}
	if w := s.ask("GET", "/v1/hooks/push", ""); w.Code != 401 {
		t.Errorf("GET: %d", w.Code)
	}
	if w := s.ask("POST", "/v1/hooks/push", "x", "Host: evil.example"); w.Code != 421 {
		t.Errorf("another host: %d", w.Code)
	}
}
