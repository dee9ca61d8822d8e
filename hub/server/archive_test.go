package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/protocol"
)

// guarded serves a shop behind a guard whose ordinary bodies have at most 10 bytes.
func guarded(t *testing.T, s *shop, most int64, scopes ...guard.Scope) client.Service {
	t.Helper()
	h := httptest.NewUnstartedServer(nil)
	g := &guard.Guard{Hosts: []string{h.Listener.Addr().String()}, Peer: guard.Identity{Name: "ada", Scopes: scopes}, MaxBody: func(*http.Request) int64 { return 10 }, Uploads: Upload}
	h.Config.Handler = g.Wrap((&Server{Service: s, Feed: s, MaxArchive: most}).Handler())
	h.Start()
	t.Cleanup(h.Close)
	// It waits for longer than any test for the server to want the body.
	via := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour, DialContext: (&net.Dialer{}).DialContext}}
	a, err := client.New(h.URL, client.Options{HTTP: &http.Client{Transport: to{h.Listener.Addr().String(), via}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(via.CloseIdleConnections)
	return client.Service{API: a}
}

// to sends requests to an address, whatever they name.
type to struct {
	address string
	via     *http.Client
}

func (x to) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = x.address, x.address
	return x.via.Transport.RoundTrip(r)
}

// unread is an archive that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the archive was sent")
	return 0, io.EOF
}

// An archive is longer than any other body, up to a bound of its own.
func TestAnArchiveIsReadUpToItsBound(t *testing.T) {
	s := &shop{}
	c := guarded(t, s, 3<<20, guard.Admin, guard.Run)
	if _, err := c.Import(t.Context(), strings.NewReader(strings.Repeat("x", 3<<20)), api.ImportOptions{Run: "copy"}); err != nil {
		t.Error(err)
	}
	if got := strings.Join(s.asked, "; "); got != `import of 3145728 bytes as "copy"` {
		t.Errorf("asked for %s", got)
	}
	if _, err := c.Import(t.Context(), strings.NewReader(strings.Repeat("x", 3<<20+1)), api.ImportOptions{}); protocol.CodeOf(err) != protocol.ErrTooLarge.Code || !strings.Contains(err.Error(), "3145728") {
		t.Errorf("one byte more: %v", err)
	}
	if err := c.Cancel(t.Context(), "R", "too many bytes"); protocol.CodeOf(err) != protocol.ErrTooLarge.Code {
		t.Errorf("another body of more than 10 bytes: %v", err)
	}
	if len(s.asked) != 1 {
		t.Errorf("asked for %q", s.asked)
	}
}

// An archive that cannot be taken is a fault of the request, and none of the server.
func TestAnArchiveThatCannotBeTakenIsNoFaultOfTheServer(t *testing.T) {
	for _, why := range []*protocol.Error{protocol.ErrCorrupt, protocol.ErrVerify, protocol.ErrInvalidBlock} {
		s := &shop{takes: func(io.Reader) error {
			if why == protocol.ErrInvalidBlock { // as of blocks that only other systems name
				return why
			}
			return api.ArchiveFault(why)
		}}
		r := httptest.NewRequestWithContext(guard.With(t.Context(), guard.Identity{Scopes: guard.AllScopes}), http.MethodPost, ImportPath, strings.NewReader("archive"))
		r.Header.Set("Content-Type", mediaCAR)
		w := httptest.NewRecorder()
		(&Server{Service: s, Feed: s}).Handler().ServeHTTP(w, r)
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), why.Code) {
			t.Errorf("%s: %d %s", why.Code, w.Code, w.Body)
		}
	}
}

// Who may not import is told before the archive is sent.
func TestAnArchiveThatIsNotTakenIsNotSent(t *testing.T) {
	s := &shop{}
	c := guarded(t, s, 0, guard.Read, guard.Run, guard.Answer)
	if _, err := c.Import(t.Context(), unread{t}, api.ImportOptions{}); !errors.Is(err, protocol.ErrForbidden) {
		t.Errorf("%v", err)
	}
	c = guarded(t, s, 0, guard.Admin)
	if _, err := c.Import(t.Context(), unread{t}, api.ImportOptions{Run: protocol.RunID(strings.Repeat("x", 201))}); protocol.CodeOf(err) != protocol.ErrBadRequest.Code {
		t.Errorf("%v", err)
	}
	s.takes = func(io.Reader) error { return protocol.ErrUsage } // as a store says where a worker is named
	if _, err := c.Import(t.Context(), unread{t}, api.ImportOptions{Worker: "a"}); protocol.CodeOf(err) != protocol.ErrUsage.Code {
		t.Errorf("a worker at what is no hub: %v", err)
	}
	if len(s.asked) != 0 {
		t.Errorf("asked for %q", s.asked)
	}
}

// A client that goes away in the middle has imported nothing.
func TestAnArchiveThatBreaksOffIsNone(t *testing.T) {
	said := make(chan error, 1)
	s := &shop{takes: func(archive io.Reader) error {
		_, err := io.Copy(io.Discard, archive)
		said <- err
		return err
	}}
	c := guarded(t, s, 0, guard.Admin)
	gone := errors.New("killed")
	if _, err := c.Import(t.Context(), io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), failing{gone}), api.ImportOptions{}); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	if err := <-said; err == nil {
		t.Error("the server took it for whole")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A definition is brought by those alone who may do everything.
func TestADefinitionNeedsScopeAdmin(t *testing.T) {
	const body = `{"step":"coder#2","with":{"file":"/w.yaml","source":"wf: 1"}}`
	s := &shop{}
	if w := ask(s, []guard.Scope{guard.Run}, "POST", "/v1/runs/R/fork", body); w.Code != 403 || len(s.asked) > 0 {
		t.Errorf("%d %s, asked for %q", w.Code, w.Body, s.asked)
	}
	if w := ask(s, []guard.Scope{guard.Run}, "POST", "/v1/runs/R/fork", `{"step":"coder#2"}`); w.Code != 201 {
		t.Errorf("without one: %d %s", w.Code, w.Body)
	}
}
