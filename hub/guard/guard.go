package guard

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
)

// Guard stands before a handler on one listener. The fields are set once, before use.
type Guard struct {
	// Hosts are the names the server goes by, exactly as in a Host header: 127.0.0.1:8765.
	Hosts []string
	// Origins may send requests besides the server's own: https://wf.example.org.
	Origins []string
	// Keys open the server. nil is for a listener that knows its peers, a unix socket that
	// checked their uid: every request there is of Peer.
	Keys *Keys
	Peer Identity
	// Public are the requests that need no credentials: the page, not what it shows. nil is
	// none.
	Public func(*http.Request) bool
	// MaxBody is the most bytes of the body of a request; nil is 1 MiB for all.
	MaxBody func(*http.Request) int64
	// Uploads are the requests whose handler bounds the body and reads it as it comes: a client has a while for
	// each piece of it. nil is none.
	Uploads func(*http.Request) bool
	// Signed are the requests whose handler lets them in by a signature over their body: neither credentials nor the
	// Origin are looked at. nil is none.
	Signed func(*http.Request) bool
	// Log has a line for every refusal; nil discards it.
	Log *slog.Logger
	// Refused is called with the code of every refusal; nil is for none that counts them.
	Refused func(code string)
	// Door is that of the listener; nil is none, as of a unix socket.
	Door *Door

	failed  Failures
	now     func() time.Time
	recheck time.Duration // see lasting; 0 is recheckEvery
}

// LoginPath is where a browser exchanges its code for a login: POST {"code":"…"}.
const LoginPath = "/v1/login"

// TokenProtocol begins the WebSocket subprotocol that carries a token, where no header can be
// set: wf.token.TOKEN.
const TokenProtocol = "wf.token."

// bodyTime is how long a client may take to send a body. One that is as long as it likes has that time, and a second
// more for each bodyRate bytes that it sent: only what it is waited for counts.
const (
	bodyTime = 30 * time.Second
	bodyRate = 4 << 10
)

// RetryAfter is when a client may come again that met a bound, in seconds.
const RetryAfter = "5"

// recheckEvery is how often the credentials of an open stream are looked at again.
const recheckEvery = 2 * time.Second

const defaultBody = 1 << 20

// Wrap puts the guard before a handler. Requests that are let in carry an Identity (Of); those
// that are Public may carry none. The context of a request ends with its credentials, with
// protocol.ErrUnauthorized as its cause: a stream must not outlive a token that was taken away.
// A whole answer has reply.WriteTime to be read; streams set deadlines of their own.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	var cross http.CrossOriginProtection
	for _, o := range g.Origins {
		if err := cross.AddTrustedOrigin(o); err != nil {
			g.log().Warn("an origin that cannot be one is left out", "origin", o, "error", err)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		// Where deadlines cannot be set (a recorder) the other end has its own.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(reply.WriteTime))
		r = g.Door.arrive(r)
		signed := g.Signed != nil && g.Signed(r)
		err := g.called(r)
		if err == nil && !isClean(r.URL.Path) {
			err = reply.NotFound(r)
		}
		if err == nil && !signed {
			err = g.screen(r, &cross)
		}
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		r = g.limitBody(w, r)
		if signed {
			next.ServeHTTP(w, r)
			return
		}
		if r.URL.Path == LoginPath && g.Keys != nil {
			g.login(w, r)
			return
		}
		found, err := g.identify(r)
		switch {
		case err != nil:
			g.refuse(w, r, err)
			return
		case found != nil:
			err := Admit(r, found.Identity.holder())
			if err == nil {
				err = found.proof.pace.spend(w, found.Name, g.time())
			}
			if err != nil {
				g.refuse(w, r, err)
				return
			}
			ctx, done := g.lasting(With(r.Context(), found.Identity), found)
			defer done()
			r = r.WithContext(ctx)
		case g.Public == nil || !g.Public(r):
			g.refuse(w, r, protocol.ErrUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headers are what every answer says to browsers.
func headers(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// called refuses a request for another server.
func (g *Guard) called(r *http.Request) error {
	if !slices.Contains(g.Hosts, strings.ToLower(r.Host)) {
		return fmt.Errorf("the Host %q is none of %s: %w", r.Host, strings.Join(g.Hosts, ", "), protocol.ErrMisdirected)
	}
	return nil
}

// isClean reports whether a path leads where it seems to: not by "..", "." or "//" in it, written as they are or encoded. http.ServeMux would send the
// client on to another one, of a route that lets other requests in.
func isClean(p string) bool {
	clean := path.Clean(p)
	if clean != "/" && strings.HasSuffix(p, "/") {
		clean += "/"
	}
	return p == clean
}

// screen refuses what is wrong whatever the credentials.
func (g *Guard) screen(r *http.Request, cross *http.CrossOriginProtection) error {
	const open = "open the page at an address that the server prints, or allow the origin with --origin"
	if origins := r.Header.Values("Origin"); len(origins) > 0 && (len(origins) > 1 || !g.ours(r, origins[0])) {
		return protocol.ErrForbidden.With(open, "requests of the origin %q are not taken", strings.Join(origins, ", "))
	}
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") &&
		r.Header.Get("Sec-Fetch-Mode") != "navigate" && !g.trusts(r.Header.Get("Origin")) {
		return protocol.ErrForbidden.With(open, "another site asks (Sec-Fetch-Site: %s)", site)
	}
	if err := cross.Check(r); err != nil {
		return protocol.ErrForbidden.With(open, "%v", err)
	}
	return g.inQuery(r.URL)
}

// ours reports whether an Origin is that of the server itself, or one that is allowed.
func (g *Guard) ours(r *http.Request, origin string) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return strings.EqualFold(origin, scheme+r.Host) || g.trusts(origin)
}

func (g *Guard) trusts(origin string) bool {
	return origin != "" && origin != "null" && slices.Contains(g.Origins, origin)
}

// secretParameters are names under which clients put credentials into addresses.
var secretParameters = []string{"token", "access_token", "auth_token", "api_key", "apikey", "code", "authorization"}

// inQuery refuses credentials in an address: addresses end up in logs, histories and Referer
// headers.
func (g *Guard) inQuery(u *url.URL) error {
	if u.RawQuery == "" {
		return nil
	}
	bad := func(name string) error {
		return reply.Badf("the query parameter %q carries a secret, and addresses are logged; send Authorization: Bearer TOKEN instead, and make a new token", name)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return reply.Badf("query: %v", err)
	}
	for name, values := range query {
		if slices.Contains(secretParameters, strings.ToLower(name)) {
			return bad(name)
		}
		for _, v := range values {
			if g.Keys == nil {
				continue
			}
			_, token := g.Keys.byToken(v)
			_, _, login := g.Keys.byLogin(v)
			if token || login {
				return bad(name)
			}
		}
	}
	return nil
}

// limitBody bounds the body of a request, and the time in which it must come.
func (g *Guard) limitBody(w http.ResponseWriter, r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	deadline := http.NewResponseController(w)
	// Where deadlines cannot be set (a recorder, a stream of a hub) the other end has its own.
	_ = deadline.SetReadDeadline(time.Now().Add(bodyTime))
	if g.Uploads != nil && g.Uploads(r) {
		// The request of the server keeps its own body: where that is not read, a client that waits for
		// 100 Continue has the answer at once.
		r = r.WithContext(r.Context())
		r.Body = &pieces{ReadCloser: r.Body, left: bodyTime, until: func(t time.Time) { _ = deadline.SetReadDeadline(t) }}
		return r
	}
	limit := int64(defaultBody)
	if g.MaxBody != nil {
		limit = g.MaxBody(r)
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	return r
}

// pieces is a body that comes for as long as it comes fast enough. What the server does in between costs the client
// nothing, and what it sent early it has for later, up to bodyTime.
type pieces struct {
	io.ReadCloser
	left  time.Duration // for which the client is waited for
	until func(time.Time)
}

func (p *pieces) Read(b []byte) (int, error) {
	begun := time.Now()
	p.until(begun.Add(p.left))
	n, err := p.ReadCloser.Read(b)
	p.left = min(bodyTime, p.left-time.Since(begun)+time.Duration(n)*(time.Second/bodyRate))
	return n, err
}

// bearer is the token of a request, from the header or the subprotocols of a WebSocket. The
// latter is taken out: what follows must not answer with it.
func bearer(r *http.Request) (string, bool) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", true // of no kind that is known
		}
		return strings.TrimSpace(token), true
	}
	if !upgrades(r) {
		return "", false
	}
	const name = "Sec-Websocket-Protocol"
	var token string
	var found bool
	var rest []string
	for _, list := range r.Header.Values(name) {
		for p := range strings.SplitSeq(list, ",") {
			p = strings.TrimSpace(p)
			if t, ok := strings.CutPrefix(p, TokenProtocol); ok {
				token, found = t, true
			} else if p != "" {
				rest = append(rest, p)
			}
		}
	}
	if found {
		r.Header.Set(name, strings.Join(rest, ", "))
		if len(rest) == 0 {
			r.Header.Del(name)
		}
	}
	return token, found
}

func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func upgrades(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// LoginRequest asks for a login.
type LoginRequest struct {
	Code string `json:"code"` // of an address that wf printed, once
}

// Login is wf.login/v1: a login. Its token is sent as those of programs are.
type Login struct {
	Schema  string   `json:"schema"`
	Token   string   `json:"token"`
	Expires api.Time `json:"expires"`
	Scopes  []Scope  `json:"scopes"`
}

// login exchanges a code for a login.
func (g *Guard) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		reply.Error(w, protocol.ErrMethod.With("", "%s takes POST, not %s", LoginPath, r.Method))
		return
	}
	var body LoginRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		g.refuse(w, r, reply.BodyError(err))
		return
	}
	at := placeOf(r)
	if at.origin == "" {
		g.refuse(w, r, protocol.ErrForbidden.With("programs use a token", "a login without an Origin is none of a browser"))
		return
	}
	token, ends, id, ok := g.Keys.redeem(body.Code, at)
	if !ok {
		g.refuse(w, r, protocol.ErrUnauthorized.With("wf serve prints a new one when it starts, and with wf serve --login",
			"the code was used, is too old, was never given, or belongs to a token that is no longer in the file"))
		return
	}
	reply.JSON(w, http.StatusOK, Login{"wf.login/v1", token, ends.UTC().Format(time.RFC3339), id.Scopes})
}

// refuse answers with an error and logs it. Wrong credentials count; a request without any does not,
// or any web page could lock the owner out.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, protocol.ErrUnauthorized) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		if err != error(protocol.ErrUnauthorized) {
			if ok, retry := g.failed.Spend(PeerOf(r), g.time()); !ok {
				w.Header().Set("Retry-After", strconv.Itoa(int(retry.Seconds())))
				err = protocol.ErrRateLimited.With("", "too many wrong tokens from this address: %d, and then one each %s", failBurst, failEvery)
			}
		}
	}
	if errors.Is(err, protocol.ErrRateLimited) && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", RetryAfter)
	}
	DrainBriefly(w)
	if g.Refused != nil {
		g.Refused(protocol.CodeOf(err))
	}
	g.log().Warn("request refused", "code", protocol.CodeOf(err), "why", err.Error(), "remote", RemoteOf(r), "method", r.Method, "path", r.URL.Path)
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	reply.Error(w, err)
}

// drainTime is how long a body that is not wanted is read: a client that is still sending it has the answer then, and one
// that goes on for ever does not hold the connection.
const drainTime = time.Second

// DrainBriefly is for an answer before the body of its request was read.
func DrainBriefly(w http.ResponseWriter) {
	// Where deadlines cannot be set (a recorder, a stream of a hub) the other end has its own.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
}

func (g *Guard) time() time.Time {
	if g.now != nil {
		return g.now()
	}
	return time.Now()
}

func (g *Guard) log() *slog.Logger {
	return cmp.Or(g.Log, slog.New(slog.DiscardHandler))
}
