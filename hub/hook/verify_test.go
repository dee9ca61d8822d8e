package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"wf/protocol"
)

// headers are NAME: VALUE.
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

// macOf is a signature by another hand than that of the package.
func macOf(key, content string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(content))
	return m.Sum(nil)
}

var at = time.Unix(1_700_000_000, 0)

func check(t *testing.T, kind string, h http.Header, body string, secrets ...string) (Signed, error) {
	t.Helper()
	return Verify(kind, h, []byte(body), secrets, at)
}

// The example of GitHub's documentation, "Validating webhook deliveries".
func TestGitHubSigns(t *testing.T) {
	const secret, body = "It's a Secret to Everybody", "Hello, World!"
	const sig = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	good := "X-Hub-Signature-256: sha256=" + sig
	s, err := check(t, protocol.WebhookGitHub, headers(good, "X-GitHub-Delivery: d-1"), body, "another secret", secret)
	if want := sha256.Sum256([]byte(body)); err != nil || s.Key != hex.EncodeToString(want[:]) || s.Delivery != "d-1" {
		t.Errorf("%+v, %v", s, err)
	}
	// The delivery and whatever else is not signed changes nothing of what distinguishes the event.
	if again, err := check(t, protocol.WebhookGitHub, headers(good, "X-GitHub-Delivery: d-2"), body, secret); err != nil || again.Key != s.Key {
		t.Errorf("%+v, %v", again, err)
	}
	for name, h := range map[string]http.Header{
		"none":                  headers(),
		"two":                   headers(good, good),
		"SHA-1":                 headers("X-Hub-Signature: sha1=" + strings.Repeat("0", 40)),
		"another":               headers("X-Hub-Signature-256: sha256=" + strings.Repeat("0", 64)),
		"one byte short":        headers("X-Hub-Signature-256: sha256=" + sig[2:]),
		"one byte more":         headers(good + "00"),
		"empty":                 headers("X-Hub-Signature-256: sha256="),
		"no algorithm":          headers("X-Hub-Signature-256: " + sig),
		"no hexadecimal digits": headers("X-Hub-Signature-256: sha256=" + strings.Repeat("g", 64)),
	} {
		if _, err := check(t, protocol.WebhookGitHub, h, body, secret); !errors.Is(err, errSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := check(t, protocol.WebhookGitHub, headers(good), body+" ", secret); !errors.Is(err, errSignature) {
		t.Errorf("another body: %v", err)
	}
	for _, secrets := range [][]string{nil, {""}, {"It's a secret to Everybody"}} {
		if _, err := check(t, protocol.WebhookGitHub, headers(good), body, secrets...); !errors.Is(err, errSignature) {
			t.Errorf("secrets %q: %v", secrets, err)
		}
	}
	empty := fmt.Sprintf("X-Hub-Signature-256: sha256=%x", macOf("", body)) // anyone can sign with no secret
	if _, err := check(t, protocol.WebhookGitHub, headers(empty), body, ""); !errors.Is(err, errSignature) {
		t.Errorf("signed with the empty secret: %v", err)
	}
}

func TestStripeSigns(t *testing.T) {
	const secret, body = "whsec_abcdefghijklmnop", `{"id":"evt_1","type":"charge.succeeded"}`
	sign := func(secret string, when int64, body string) string {
		return fmt.Sprintf("Stripe-Signature: t=%d,v1=%x,v0=ignored", when, macOf(secret, fmt.Sprintf("%d.%s", when, body)))
	}
	now := at.Unix()
	for off, good := range map[int64]bool{0: true, -300: true, -301: false, 300: true, 301: false} {
		s, err := check(t, protocol.WebhookStripe, headers(sign(secret, now+off, body)), body, secret)
		if (err == nil) != good || good && s.Key != "evt_1" {
			t.Errorf("%d s off: %+v, %v", off, s, err)
		}
	}
	old := "Stripe-Signature: t=" + fmt.Sprint(now) + ",v1=" + strings.Repeat("00", 32) + fmt.Sprintf(",v1=%x", macOf(secret, fmt.Sprint(now)+"."+body))
	if _, err := check(t, protocol.WebhookStripe, headers(old), body, secret); err != nil {
		t.Errorf("two signatures, one of which holds: %v", err)
	}
	v1 := strings.Split(sign(secret, now, body), ",")[1]
	for name, h := range map[string]string{
		"no time": "Stripe-Signature: " + v1, "two times": fmt.Sprintf("Stripe-Signature: t=%d,t=%d,%s", now, now, v1),
		"a signed time": fmt.Sprintf("Stripe-Signature: t=+%d,%s", now, v1), "a time beyond numbers": "Stripe-Signature: t=99999999999999999999," + v1,
		"the least time": "Stripe-Signature: t=-9223372036854775808," + v1, "v0 alone": fmt.Sprintf("Stripe-Signature: t=%d,%s", now, strings.Replace(v1, "v1", "v0", 1)),
		"another secret": sign("whsec_other", now, body), "another body": sign(secret, now, body+" "),
		"too many": fmt.Sprintf("Stripe-Signature: t=%d", now) + strings.Repeat(","+v1, mostSignatures+1),
	} {
		if _, err := check(t, protocol.WebhookStripe, headers(h), body, secret); !errors.Is(err, errSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, body := range []string{`{}`, `[]`, `{"id":""}`, `{"id":7}`, `{"id":"a b"}`, "", `{"id":"` + strings.Repeat("x", mostID+1) + `"}`} {
		if _, err := check(t, protocol.WebhookStripe, headers(sign(secret, now, body)), body, secret); !errors.Is(err, errSignature) {
			t.Errorf("%.40s: %v", body, err)
		}
	}
}

// The example of the reference libraries of Standard Webhooks.
func TestStandardWebhooksSign(t *testing.T) {
	const secret, id, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`
	const known = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	one := func(id, when, sig string) http.Header {
		return headers("webhook-id: "+id, "webhook-timestamp: "+when, "webhook-signature: "+sig)
	}
	s, err := Verify(protocol.WebhookHMAC, one(id, "1614265330", known), []byte(body), []string{secret}, time.Unix(1614265330, 0))
	if err != nil || s.Key != id || s.Delivery != id {
		t.Fatalf("%+v, %v", s, err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	sign := func(key, id, when, body string) string {
		return "v1," + base64.StdEncoding.EncodeToString(macOf(key, id+"."+when+"."+body))
	}
	now := fmt.Sprint(at.Unix())
	good := sign(string(key), id, now, body)
	for name, h := range map[string]http.Header{
		"behind others":           one(id, now, "v1a,xyz v1,AAAA "+good),
		"a secret that is text":   one(id, now, sign("a secret of my own", id, now, body)),
		"five minutes old":        one(id, fmt.Sprint(at.Unix()-300), sign(string(key), id, fmt.Sprint(at.Unix()-300), body)),
		"five minutes in advance": one(id, fmt.Sprint(at.Unix()+300), sign(string(key), id, fmt.Sprint(at.Unix()+300), body)),
	} {
		if _, err := check(t, protocol.WebhookHMAC, h, body, secret, "a secret of my own"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	old := fmt.Sprint(at.Unix() - 301)
	for name, h := range map[string]http.Header{
		"older": one(id, old, sign(string(key), id, old, body)), "another id": one("msg_2", now, good), "another time": one(id, fmt.Sprint(at.Unix()-1), good),
		"no id": headers("webhook-timestamp: "+now, "webhook-signature: "+good), "another version": one(id, now, strings.Replace(good, "v1,", "v2,", 1)),
		// A dot in an id would let the same signed bytes be read as another event.
		"an id with a dot": one("a."+now, now, sign(string(key), "a."+now, now, body)),
		"the key as text":  one(id, now, sign(secret, id, now, body)),
		"a long id":        one(strings.Repeat("i", mostID+1), now, sign(string(key), strings.Repeat("i", mostID+1), now, body)),
		"too many":         one(id, now, strings.Repeat(good+" ", mostSignatures+1)),
	} {
		if _, err := check(t, protocol.WebhookHMAC, h, body, secret); !errors.Is(err, errSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := check(t, "other", one(id, now, good), body, secret); !errors.Is(err, errSignature) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// Whatever the headers hold: no signature holds that was not made with the secret, and what distinguishes an event is printable.
func FuzzVerify(f *testing.F) {
	f.Add("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "d", "1", []byte("Hello, World!"))
	f.Add("t=1700000000,v1=00", "msg_1", "1700000000", []byte(`{"id":"evt_1"}`))
	f.Add("v1,AAAA v1a,x", "a.b", "", []byte{0xff})
	f.Fuzz(func(t *testing.T, sig, id, when string, body []byte) {
		h := http.Header{"X-Hub-Signature-256": {sig}, "Stripe-Signature": {sig}, "Webhook-Signature": {sig}, "Webhook-Id": {id}, "Webhook-Timestamp": {when}, "X-Github-Delivery": {id}}
		for _, kind := range []string{protocol.WebhookGitHub, protocol.WebhookStripe, protocol.WebhookHMAC} {
			if s, err := Verify(kind, h, body, []string{"a secret that nothing was signed with", ""}, at); !errors.Is(err, errSignature) || s != (Signed{}) {
				t.Errorf("%s: %+v, %v", kind, s, err)
			}
		}
		if l := label(id); len(l) > mostID || label(l) != l {
			t.Errorf("label %q", l)
		}
	})
}
