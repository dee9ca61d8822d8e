package hook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
)

// MaxBody is the most bytes of an event.
const MaxBody = 1 << 20

const (
	reading  = 256              // events that are read at once: none of them is known to be signed yet
	long     = 48               // of them that are longer than short
	short    = 64 << 10         // bytes
	patience = 10 * time.Second // in which an event must come
	retryIn  = "5"              // seconds
)

// A Hook is what a name serves.
type Hook struct {
	Name    string
	Kind    string
	Secrets []string // that are set; an event may be signed by any
	// Take keeps what an event starts, and returns when that is on disk. An error wrapping ErrUnfit says that it will
	// never be taken, one wrapping ErrFull that too many wait; after any but the first the sender may try again. What it says is
	// for the log.
	Take func(ctx context.Context, e Event) (Taken, error)
}

// An Event is a request whose signature holds.
type Event struct {
	Signed
	Media   string            // the Content-Type
	Body    []byte            // as it came
	Headers map[string]string // by names in lower case, without those that carry credentials
}

// Taken is what became of an event.
type Taken struct {
	Run   protocol.RunID // "" for one that starts nothing
	Fresh bool           // false for one that was taken before
}

// ErrUnfit is an event that a workflow cannot take.
var ErrUnfit = errors.New("the event does not fit the workflow")

// A Receiver answers POST /v1/hooks/NAME. The fields are set once, before use.
type Receiver struct {
	// Find is the hook of a name; nil, with no error, where none is served.
	Find func(ctx context.Context, name string) (*Hook, error)
	Log  *slog.Logger // not nil

	Now      func() time.Time // default time.Now
	Patience time.Duration    // default 10 s

	failed guard.Failures
	once   sync.Once
	reads  guard.Places // of events that are read
	longs  guard.Places // of those that are long
	known  guard.Known  // the peers that sent some whose signature held
}

// The answers. They tell a sender what to do, and a stranger nothing.
var (
	errUnknown = protocol.Hinted(&protocol.Error{Code: protocol.ErrUnauthorized.Code, Message: "no webhook takes this request: none has this name, or the signature does not hold"},
		"the log of wf serve says which; it may also wait for trust, or for its secret")
	errTooMany = &protocol.Error{Code: protocol.ErrRateLimited.Code, Message: "too many requests", Hint: "send it again later"}
	errLater   = &protocol.Error{Code: protocol.ErrBusy.Code, Message: "nothing was started yet", Hint: "send it again"}
	errUnfit   = &protocol.Error{Code: protocol.ErrInputs.Code, Message: "the event does not fit the workflow; nothing was started", Hint: "the log of wf serve says why"}
)

// ServeHTTP answers a request whose path has the name of a hook.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	body, err := rc.read(w, r)
	if err != nil {
		rc.refuse(w, r, name, err)
		return
	}
	h, signed, err := rc.signed(r, name, body)
	if err != nil {
		rc.refuse(w, r, name, err)
		return
	}
	rc.known.Note(guard.PeerOf(r), rc.now())
	if err := guard.Admit(r, guard.Holder{Name: "webhook " + h.Name}); err != nil {
		rc.Log.Warn("too many events at once", "webhook", h.Name, "why", err.Error())
		later(w, errTooMany)
		return
	}
	if h.Kind == protocol.WebhookGitHub && r.Header.Get("X-Github-Event") == "ping" { // GitHub asks whether the hook is there
		rc.Log.Info("webhook pinged", "webhook", h.Name)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	taken, err := h.Take(r.Context(), Event{Signed: signed, Media: r.Header.Get("Content-Type"), Body: body, Headers: open(r.Header)})
	log := rc.Log.With("webhook", h.Name, "kind", h.Kind, "delivery", signed.Delivery)
	switch {
	case errors.Is(err, ErrUnfit):
		log.Warn("the event cannot be taken", "why", err.Error())
		reply.Error(w, errUnfit)
	case errors.Is(err, ErrFull):
		log.Warn("too many events wait; the sender may try again", "why", err.Error())
		later(w, errTooMany)
	case err != nil:
		log.Error("the event was not taken; its sender may try again", "why", err.Error(), "fix", protocol.HintOf(err))
		later(w, errLater)
	case taken.Run == "":
		log.Info("the event starts nothing")
		w.WriteHeader(http.StatusNoContent)
	default:
		status := http.StatusOK
		if taken.Fresh {
			status = http.StatusAccepted
		}
		log.Info("taken by webhook", "run", taken.Run, "fresh", taken.Fresh)
		reply.JSON(w, status, api.Started{Schema: "wf.started/v1", ID: taken.Run, Fresh: taken.Fresh})
	}
}

// errEncoded is a body that was compressed: its signature is over other bytes than a reader would see.
var errEncoded = protocol.ErrMedia.With("send it as it is", "a body with a Content-Encoding is not taken")

// read reads the body of a request, within its bounds. Where too many are read at once the one gives way that has been
// read for the longest time, of the peer from which the most are: a sender's is read in no time.
func (rc *Receiver) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, errEncoded
	}
	if r.ContentLength > MaxBody {
		return nil, &http.MaxBytesError{Limit: MaxBody}
	}
	rc.once.Do(func() {
		// A quarter is the most of one peer that is a stranger, and kept for those that are none.
		rc.reads = guard.Places{What: "events that are read", Most: reading, Each: reading / 4, Kept: reading / 4, Spared: reading / 4}
		rc.longs = guard.Places{What: "long events that are read", Most: long, Each: long / 4, Kept: long / 4, Spared: long / 4}
	})
	// Where deadlines cannot be set (a recorder) the other end has its own.
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(cmp.Or(rc.Patience, patience)))
	var gone atomic.Bool
	peer := guard.PeerOf(r)
	by := guard.Holder{Name: string(peer), Favoured: rc.known.Has(peer, rc.now())}
	cut := func() {
		gone.Store(true)
		_ = deadline.SetReadDeadline(time.Now())
	}
	place, err := rc.reads.Take(by, false, cut)
	if err != nil {
		return nil, errLater
	}
	defer place.Leave()
	from := http.MaxBytesReader(w, r.Body, MaxBody)
	body, err := io.ReadAll(io.LimitReader(from, short))
	if err == nil && len(body) == short {
		var place *guard.Place
		if place, err = rc.longs.Take(by, false, cut); err != nil {
			return nil, errLater
		}
		defer place.Leave()
		whole := bytes.NewBuffer(make([]byte, 0, max(2*short, r.ContentLength+bytes.MinRead)))
		whole.Write(body)
		_, err = whole.ReadFrom(from)
		body = whole.Bytes()
	}
	if err != nil && gone.Load() {
		return nil, errLater
	}
	return body, err
}

// noHook stands for a hook that is not served: a signature is held against it all the same, so that the time an answer
// takes does not tell the two apart.
var noHook = sync.OnceValue(func() *Hook { return &Hook{Kind: protocol.WebhookGitHub, Secrets: []string{rand.Text()}} })

// signed finds the hook of a request, and what its signature proves.
func (rc *Receiver) signed(r *http.Request, name string, body []byte) (*Hook, Signed, error) {
	h, err := rc.Find(r.Context(), name)
	if err != nil {
		rc.Log.Error("the webhooks cannot be read", "why", err.Error())
		return nil, Signed{}, errLater
	}
	if h == nil {
		_, _ = Verify(noHook().Kind, r.Header, body, noHook().Secrets, rc.now())
		return nil, Signed{}, notSigned("no webhook of this name is served")
	}
	s, err := Verify(h.Kind, r.Header, body, h.Secrets, rc.now())
	return h, s, err
}

// refuse answers a request that is no event. Wrong signatures count: of those with too many the log has no more lines.
func (rc *Receiver) refuse(w http.ResponseWriter, r *http.Request, name string, err error) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	guard.DrainBriefly(w)
	var big *http.MaxBytesError
	switch {
	case errors.Is(err, errSignature):
		if ok, _ := rc.failed.Spend(guard.PeerOf(r), rc.now()); !ok {
			later(w, errTooMany)
			return
		}
		rc.Log.Warn("request refused", "webhook", name, "why", err.Error(), "remote", guard.RemoteOf(r))
		reply.Error(w, errUnknown)
	case errors.Is(err, errLater):
		later(w, errLater)
	case errors.Is(err, errEncoded):
		reply.Error(w, err)
	case errors.As(err, &big):
		reply.Error(w, protocol.ErrTooLarge.With("send less", "the event has more than %d bytes", MaxBody))
	default:
		reply.Error(w, reply.Badf("the body breaks off, or did not come in time"))
	}
}

// later answers that the sender may try again.
func later(w http.ResponseWriter, err error) {
	w.Header().Set("Retry-After", retryIn)
	reply.Error(w, err)
}

func (rc *Receiver) now() time.Time {
	if rc.Now != nil {
		return rc.Now()
	}
	return time.Now()
}

// closed are headers that carry credentials, of the sender or of a proxy on the way.
var closed = map[string]bool{"Authorization": true, "Cookie": true, "Proxy-Authorization": true, "X-Hub-Signature": true, "X-Hub-Signature-256": true,
	"Stripe-Signature": true, "Webhook-Signature": true}

// open are the headers that expressions see.
func open(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		if !closed[name] {
			out[strings.ToLower(name)] = strings.Join(values, ", ")
		}
	}
	return out
}

// Request is the request id of the run that an event starts: the same for the same event of a hook.
func (e Event) Request(h *Hook) string { return "webhook/" + h.Name + "/" + h.Kind + "/" + e.Key }
