// Package webhooksig signs and checks messages as Standard Webhooks says (standardwebhooks.com, v1):
//
//	webhook-id: ID   webhook-timestamp: unix seconds   webhook-signature: v1,base64(HMAC-SHA-256(key, ID.TIMESTAMP.BODY))
//
// # Not here
//
// Replay: whether a timestamp is near and an id is new, the receiver says.
package webhooksig

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
)

// The headers of a message.
const (
	ID        = "webhook-id"
	Timestamp = "webhook-timestamp"
	Signature = "webhook-signature"
)

// prefix marks a secret whose key is written in base64.
const prefix = "whsec_"

// Key is the key of a secret: what whsec_ is followed by, read as base64, else its bytes.
func Key(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, prefix)
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

// Sign is the value of the header Signature.
func Sign(key []byte, id, timestamp string, body []byte) string {
	return "v1," + base64.StdEncoding.EncodeToString(sum(key, id, timestamp, body))
}

// Verify reports whether one of the signatures in a header, of which there may be several with a space between
// them, was made with the key. It takes the same time for each.
func Verify(key []byte, id, timestamp, header string, body []byte) bool {
	want := sum(key, id, timestamp, body)
	for s := range strings.SplitSeq(header, " ") {
		encoded, v1 := strings.CutPrefix(s, "v1,")
		if got, err := base64.StdEncoding.DecodeString(encoded); v1 && err == nil && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}

func sum(key []byte, id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return h.Sum(nil)
}
