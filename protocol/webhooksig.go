package protocol

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
)

// The headers of a webhook that is signed as Standard Webhooks says (standardwebhooks.com, v1): an id, unix seconds, and
// signatures with spaces between them.
const (
	WebhookIDHeader        = "webhook-id"
	WebhookTimeHeader      = "webhook-timestamp"
	WebhookSignatureHeader = "webhook-signature"
)

// WebhookKey is the key of a secret: what whsec_ is followed by, read as base64, else its bytes. The error tells nothing
// of the secret.
func WebhookKey(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		if secret == "" {
			return nil, errors.New("the secret is empty")
		}
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, errors.New("the secret begins with whsec_ and is no base64 behind it")
	}
	return key, nil
}

// SignWebhook is the signature of a message: v1, and the base64 of HMAC-SHA-256(key, id.seconds.body).
func SignWebhook(key []byte, id, seconds string, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + seconds + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
