package daemon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/daemon"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/protocol"
	"wf/service/compose"
)

// Tokens of a file, for the names owner, ben and anna.
var (
	ownersToken = strings.Repeat("o", 43)
	bensToken   = strings.Repeat("b", 43)
	annasToken  = strings.Repeat("a", 43)
)

// house is a daemon with a socket and a TCP address that several people use.
type house struct {
	*testing.T
	*daemon.Serving
	tokens string // file
	socket string // address
	url    string
	log    *lines
}

// lines are what a server logs.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newHouse serves one workflow that asks Anna, and another that asks nobody.
func newHouse(t *testing.T, tokens string) *house {
	t.Helper()
	dir := t.TempDir()
	for name, source := range map[string]string{
		"gate": "wf: 1\nname: gate\nroles: {ask: {ask: Ship it?, choices: [ship, stop], assignees: [anna]}}\n",
		"note": "wf: 1\nname: note\nroles: {note: {set: {said: it}}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	short, err := os.MkdirTemp("", "wf")
	if err != nil {
		t.Fatal(err)
	}
	h := &house{T: t, tokens: filepath.Join(short, "tokens"), log: &lines{}}
	h.write(tokens)
	u, s := opened(t, dir)
	d, err := daemon.New(u, s, daemon.Options{Dir: dir, Workflows: []string{dir}, Name: "desk", Log: slog.New(slog.NewTextHandler(h.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	h.Serving, err = d.Serve(t.Context(), daemon.ListenOptions{Addresses: []string{"unix:" + filepath.Join(short, "s"), "127.0.0.1:0"}, TokenFile: h.tokens})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), os.RemoveAll(short)); err != nil {
			t.Error(err)
		}
	})
	ready(t, d)
	where := h.where()
	h.socket, h.url = where.Listen[0].URL, where.Listen[1].URL
	return h
}

// write replaces the file of tokens.
func (h *house) write(tokens string) {
	h.Helper()
	if err := errors.Join(os.WriteFile(h.tokens+".next", []byte(tokens), 0o600), os.Rename(h.tokens+".next", h.tokens)); err != nil {
		h.Fatal(err)
	}
}

func (h *house) where() *api.Serving {
	h.Helper()
	where, err := h.Where()
	if err != nil {
		h.Fatal(err)
	}
	return where
}

// by is a client of the daemon.
func (h *house) by(address, token string) client.Service {
	h.Helper()
	a, err := client.New(address, client.Options{Token: token})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(a.Close)
	return client.Service{API: a}
}

// page sends requests as a page of an origin does.
type page struct {
	origin string
	via    http.RoundTripper
}

func (p page) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Origin", p.origin)
	return p.via.RoundTrip(r)
}

// code has the daemon make a code for a client.
func (h *house) code(by client.Service) api.Code {
	h.Helper()
	code, err := by.API.NewCode(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return code
}

// opens is a browser that logs in with a code; status is what the server answers.
func (h *house) opens(code string) (browser client.Service, l guard.Login, status int) {
	h.Helper()
	return loggedIn(h.T, h.url, code)
}

// loggedIn is a browser at an address that logs in with a code.
func loggedIn(t *testing.T, url, code string) (browser client.Service, l guard.Login, status int) {
	t.Helper()
	via := page{url, http.DefaultTransport}
	body, err := json.Marshal(guard.LoginRequest{Code: code})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: via}).Post(url+guard.LoginPath, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&l); err != nil {
		t.Fatal(err)
	}
	a, err := client.New(url, client.Options{Token: l.Token})
	if err != nil {
		t.Fatal(err)
	}
	a.HTTP().Transport = page{url, a.HTTP().Transport}
	t.Cleanup(a.Close)
	return client.Service{API: a}, l, resp.StatusCode
}

// browser is one that logs in with a code which a client asked for.
func (h *house) browser(by client.Service) client.Service {
	h.Helper()
	browser, _, status := h.opens(h.code(by).Code)
	if status != http.StatusOK {
		h.Fatalf("login: %d", status)
	}
	return browser
}

// begun starts a workflow, and returns once the run has the status.
func (h *house) begun(by client.Service, workflow string, status protocol.RunStatus) *api.Run {
	h.Helper()
	run, _, err := by.Start(h.Context(), api.Start{Workflow: workflow})
	if err != nil {
		h.Fatal(err)
	}
	return h.reached(run, status)
}

func (h *house) reached(run protocol.RunID, status protocol.RunStatus) *api.Run {
	h.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		v, err := h.Service.Run(h.Context(), run, api.Window{})
		if err != nil {
			h.Fatal(err)
		}
		if v.Status == status {
			return v
		}
		if v.Status.Final() {
			h.Fatalf("the run is %s", v.Status)
		}
		<-tick.C
	}
}

// answers are the names under which the journal has answers to what a run asked.
func (h *house) answers(run protocol.RunID) (by []string) {
	h.Helper()
	for e, err := range h.Service.Store.After(h.Context(), run, 0) {
		if err != nil {
			h.Fatal(err)
		}
		if e.Type != protocol.EvAnswered {
			continue
		}
		d, err := e.AnyData()
		if err != nil {
			h.Fatal(err)
		}
		by = append(by, d.(protocol.Answered).By)
	}
	return by
}

// Who may not answer with a token may not by a code that the token asked for: Ben is refused at a question for Anna
// with his token, with a login, and with a login that this one asked for. What he does by them is recorded under his name.
func TestALoginActsUnderTheNameOfItsToken(t *testing.T) {
	for _, scopes := range []string{"read run admin", ""} { // all, written out and not
		h := newHouse(t, fmt.Sprintf("%s\n%s %s # ben\n%s read answer # anna\n", ownersToken, bensToken, scopes, annasToken))
		ben, anna := h.by(h.url, bensToken), h.by(h.url, annasToken)
		login := h.browser(ben)
		run := h.begun(login, "gate", protocol.Waiting)
		if run.Info.CreatedBy != "ben" {
			t.Errorf("a run that Ben started by a login is of %q", run.Info.CreatedBy)
		}
		for what, by := range map[string]client.Service{"his token": ben, "his login": login, "a login that it asked for": h.browser(login)} {
			_, err := by.Answer(t.Context(), run.ID, api.Answer{Choice: "ship"})
			if !errors.Is(err, protocol.ErrForbidden) || !strings.Contains(err.Error(), "is for anna to answer, not for ben") {
				t.Errorf("Ben answers for Anna with %s: %v", what, err)
			}
		}
		if _, err := anna.Answer(t.Context(), run.ID, api.Answer{Choice: "ship"}); err != nil {
			t.Error(err)
		}
		h.reached(run.ID, protocol.Done)
		if by := h.answers(run.ID); strings.Join(by, " ") != "anna" {
			t.Errorf("the journal has answers of %q, want Anna's alone", by)
		}
	}
}

// What is asked for at the socket is the owner's, and what the server prints at its start.
func TestACodeOfTheSocketIsTheOwners(t *testing.T) {
	h := newHouse(t, bensToken+" read run admin # ben\n"+annasToken+" # anna\n"+ownersToken+"\n")
	_, code, _ := strings.Cut(h.where().Listen[1].Open, "#code=")
	printed, l, status := h.opens(code)
	if status != http.StatusOK || len(l.Scopes) != len(guard.AllScopes) {
		t.Fatalf("the code of the start: %d %+v", status, l)
	}
	for what, by := range map[string]client.Service{"the socket": h.browser(h.by(h.socket, "")), "the start": printed} {
		if run := h.begun(by, "note", protocol.Done); run.Info.CreatedBy != compose.User() {
			t.Errorf("a run that was started by a code of %s is of %q", what, run.Info.CreatedBy)
		}
	}
}

// A token that is taken out of the file ends its code and its login at once, and no others.
func TestALoginEndsWithItsTokenAtTheDaemon(t *testing.T) {
	const others = " read run admin # ben\n"
	h := newHouse(t, ownersToken+"\n"+bensToken+others)
	ben, owner := h.by(h.url, bensToken), h.by(h.url, ownersToken)
	code := h.code(ben)
	bens, owners := h.browser(ben), h.browser(owner)
	h.write(ownersToken + "\n")
	if _, err := bens.API.Info(t.Context()); !errors.Is(err, protocol.ErrUnauthorized) {
		t.Errorf("a login of a token that is taken out: %v", err)
	}
	if _, _, status := h.opens(code.Code); status != http.StatusUnauthorized {
		t.Errorf("its code: %d", status)
	}
	if _, err := owners.API.Info(t.Context()); err != nil {
		t.Errorf("a login of another token: %v", err)
	}
}

// The end that a server names is that of the code: of one that a login asks for too.
func TestTheEndOfACodeIsTrue(t *testing.T) {
	h := newHouse(t, ownersToken+"\n")
	owner := h.by(h.url, ownersToken)
	before := time.Now().Truncate(time.Second)
	first := h.code(owner)
	browser, l, _ := h.opens(first.Code)
	second := h.code(browser)
	_, again, _ := h.opens(second.Code)
	for what, x := range map[string]struct {
		ends  string
		after time.Duration
	}{"a code": {string(first.Expires), guard.CodeLife}, "its login": {string(l.Expires), guard.LoginLife}, "a code that the login asked for": {string(second.Expires), guard.CodeLife}} {
		ends, err := time.Parse(time.RFC3339, x.ends)
		if err != nil || ends.Before(before.Add(x.after)) || ends.After(time.Now().Add(x.after)) {
			t.Errorf("%s ends at %s, %v", what, x.ends, err)
		}
	}
	if again.Expires != l.Expires {
		t.Errorf("a login that a login asked for ends at %s, want %s", again.Expires, l.Expires)
	}
	if len(first.URLs) != 1 || first.URLs[0] != h.url+"/#code="+first.Code {
		t.Errorf("addresses %q", first.URLs)
	}
}

// A server without a token of the owner starts, and says why browsers get no code; a token gets its own all the same.
func TestAServerWithoutAnOwnersTokenStarts(t *testing.T) {
	h := newHouse(t, bensToken+" read admin # ben\n")
	if at := h.where().Listen[1]; at.Open != "" || at.URL != h.url {
		t.Errorf("it listens at %+v", at)
	}
	if log := h.log.String(); !strings.Contains(log, "browsers get no code") || !strings.Contains(log, h.tokens) {
		t.Errorf("the log does not say why:\n%s", log)
	}
	_, err := h.by(h.socket, "").API.NewCode(t.Context())
	if hint := protocol.HintOf(err); !errors.Is(err, protocol.ErrForbidden) || !strings.Contains(err.Error(), h.tokens) || !strings.Contains(hint, "a token alone") {
		t.Errorf("at the socket: %v, hint %q", err, hint)
	}
	if _, l, status := h.opens(h.code(h.by(h.url, bensToken)).Code); status != http.StatusOK || fmt.Sprint(l.Scopes) != "[read admin]" {
		t.Errorf("a login of a token: %d %+v", status, l)
	}
	h.write(bensToken + " read admin # ben\n" + ownersToken + "\n") // as the hint says
	h.browser(h.by(h.socket, ""))
}

// A hub introduces its clients to a worker by name; none of them showed the worker a token, and a code belongs to one.
func TestAClientOfAHubGetsNoCodeOfItsWorker(t *testing.T) {
	h := newHouse(t, ownersToken+"\n")
	for _, name := range []string{"ben", compose.User()} {
		r := httptest.NewRequestWithContext(guard.With(t.Context(), guard.Identity{Name: name, Scopes: guard.AllScopes}), http.MethodPost, "/v1/codes", http.NoBody)
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "without a token of this server") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// A hub makes codes as a daemon does: for the token that asks.
func TestACodeOfAHubBelongsToTheTokenThatAskedForIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(ownersToken+"\n"+bensToken+" read admin # ben\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hub, err := daemon.OpenHub(t.Context(), daemon.HubOptions{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		ListenOptions: daemon.ListenOptions{Addresses: []string{"127.0.0.1:0"}, TokenFile: file}})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	where, err := hub.Where()
	if err != nil {
		t.Fatal(err)
	}
	url := where.Listen[0].URL
	for token, want := range map[string]string{ownersToken: "[read run admin]", bensToken: "[read admin]"} {
		a, err := client.New(url, client.Options{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		code, err := a.NewCode(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, l, status := loggedIn(t, url, code.Code); status != http.StatusOK || fmt.Sprint(l.Scopes) != want {
			t.Errorf("the login: %d %+v, want the scopes %s", status, l, want)
		}
	}
}
