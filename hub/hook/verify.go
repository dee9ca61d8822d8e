package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"wf/protocol"
)

// Tolerance is how far the time of a signature may be from now, where it has one.
const Tolerance = 5 * time.Minute

const (
	mostSignatures = 16  // in one header: those of the keys that a sender rotates
	mostID         = 256 // bytes of the id of an event
)

// Signed is what a signature proves.
type Signed struct {
	Key      string // distinguishes the event, made of what was signed
	Delivery string // what the sender calls the delivery; at GitHub it is not signed
}

// errSignature is every reason for which a signature does not hold; the reason is for the log alone.
var errSignature = errors.New("the signature does not hold")

func notSigned(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errSignature, fmt.Sprintf(format, args...))
}

// Verify holds a request against secrets, any of which may have signed it. The error tells nothing of a secret.
func Verify(kind string, h http.Header, body []byte, secrets []string, now time.Time) (Signed, error) {
	switch kind {
	case protocol.WebhookGitHub:
		return verifyGitHub(h, body, secrets)
	case protocol.WebhookStripe:
		return verifyStripe(h, body, secrets, now)
	case protocol.WebhookHMAC:
		return verifyStandard(h, body, secrets, now)
	}
	return Signed{}, notSigned("signatures of the kind %q are not known", kind)
}

// verifyGitHub reads X-Hub-Signature-256: sha256=HEX, over the body.
func verifyGitHub(h http.Header, body []byte, secrets []string) (Signed, error) {
	text, err := only(h, "X-Hub-Signature-256")
	if err != nil {
		return Signed{}, err
	}
	given, ok := strings.CutPrefix(text, "sha256=")
	sig, err := hex.DecodeString(given)
	if !ok || err != nil || len(sig) != sha256.Size {
		return Signed{}, notSigned("X-Hub-Signature-256 is not sha256= and 64 hexadecimal digits")
	}
	if !holds([][]byte{sig}, keysOf(secrets), body) {
		return Signed{}, notSigned("X-Hub-Signature-256 is of another secret or body")
	}
	sum := sha256.Sum256(body)
	return Signed{Key: hex.EncodeToString(sum[:]), Delivery: label(h.Get("X-Github-Delivery"))}, nil
}

// verifyStripe reads Stripe-Signature: t=SECONDS,v1=HEX,v1=HEX, over t.body.
func verifyStripe(h http.Header, body []byte, secrets []string, now time.Time) (Signed, error) {
	text, err := only(h, "Stripe-Signature")
	if err != nil {
		return Signed{}, err
	}
	var at string
	var sigs [][]byte
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			if at != "" {
				return Signed{}, notSigned("Stripe-Signature has two times")
			}
			at = value
		case "v1":
			if sig, err := hex.DecodeString(value); err == nil {
				sigs = append(sigs, sig)
			}
		}
	}
	if err := recent(at, now); err != nil {
		return Signed{}, err
	}
	if !holds(sigs, keysOf(secrets), []byte(at+"."), body) {
		return Signed{}, notSigned("Stripe-Signature is of another secret or body")
	}
	var event struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &event); err != nil || badID(event.ID) {
		return Signed{}, notSigned("the body is no event of Stripe: it has no id")
	}
	return Signed{Key: event.ID, Delivery: event.ID}, nil
}

// verifyStandard reads the headers of Standard Webhooks: webhook-signature: v1,BASE64 v1,BASE64 over id.time.body.
func verifyStandard(h http.Header, body []byte, secrets []string, now time.Time) (Signed, error) {
	var given [3]string
	for i, name := range []string{protocol.WebhookIDHeader, protocol.WebhookTimeHeader, protocol.WebhookSignatureHeader} {
		var err error
		if given[i], err = only(h, name); err != nil {
			return Signed{}, err
		}
	}
	id, at := given[0], given[1]
	// A dot would let an id reach into the time, and the time into the body.
	if badID(id) || strings.Contains(id, ".") {
		return Signed{}, notSigned("webhook-id is empty, too long, or holds a dot or what cannot be printed")
	}
	if err := recent(at, now); err != nil {
		return Signed{}, err
	}
	var sigs [][]byte
	for word := range strings.FieldsSeq(given[2]) {
		version, text, _ := strings.Cut(word, ",")
		if sig, err := base64.StdEncoding.DecodeString(text); err == nil && version == "v1" {
			sigs = append(sigs, sig)
		}
	}
	var keys [][]byte
	for _, s := range secrets {
		if key, err := protocol.WebhookKey(s); err == nil {
			keys = append(keys, key)
		}
	}
	if !holds(sigs, keys, []byte(id+"."+at+"."), body) {
		return Signed{}, notSigned("webhook-signature is of another secret, id, time or body")
	}
	return Signed{Key: id, Delivery: id}, nil
}

func keysOf(secrets []string) [][]byte {
	out := make([][]byte, len(secrets))
	for i, s := range secrets {
		out[i] = []byte(s)
	}
	return out
}

// holds reports whether one of the signatures is that of the content by one of the keys. All are compared, each in
// constant time; a header with more signatures than senders write has none.
func holds(sigs, keys [][]byte, content ...[]byte) bool {
	if len(sigs) > mostSignatures {
		return false
	}
	found := false
	for _, key := range keys {
		if len(key) == 0 {
			continue // anyone could sign with it
		}
		mac := hmac.New(sha256.New, key)
		for _, c := range content {
			mac.Write(c)
		}
		want := mac.Sum(nil)
		for _, sig := range sigs {
			if hmac.Equal(sig, want) {
				found = true
			}
		}
	}
	return found
}

// only is a header that is given once.
func only(h http.Header, name string) (string, error) {
	switch all := h.Values(name); len(all) {
	case 0:
		return "", notSigned("%s is missing", name)
	case 1:
		return all[0], nil
	default:
		return "", notSigned("%s is given %d times", name, len(all))
	}
}

// recent is nil for a time in seconds that is about now.
func recent(text string, now time.Time) error {
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text == "" || strings.TrimLeft(text, "0123456789") != "" {
		return notSigned("its time is no number of seconds")
	}
	if off := now.Unix() - at; off > int64(Tolerance/time.Second) || off < -int64(Tolerance/time.Second) {
		return notSigned("its time is more than %s from the clock of this machine", Tolerance)
	}
	return nil
}

func badID(id string) bool { return id == "" || len(id) > mostID || label(id) != id }

// label is a text of the sender as it is kept for people: printable ASCII, bounded.
func label(s string) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), mostID)]
}
