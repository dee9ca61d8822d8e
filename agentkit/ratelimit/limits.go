package ratelimit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"
)

// Window is the minute for which limits hold, and a margin for the way to the provider.
const Window = 62 * time.Second

// HoldAfter is how long a call waits before its Watcher is told.
const HoldAfter = time.Second

// MaxRetryAfter bounds what a provider may ask for with Retry-After for all calls of its account. One that asks
// for more says something else than that calls come too fast.
const MaxRetryAfter = 10 * time.Minute

// Limits of an account; 0 is none.
type Limits struct {
	Requests int   `json:"requests,omitempty"` // a minute
	Tokens   int64 `json:"tokens,omitempty"`   // a minute, of prompts and answers
	InFlight int   `json:"in_flight,omitempty"`
}

// None reports whether there is no limit.
func (l Limits) None() bool { return l == Limits{} }

// Lowest are the lower ones of two.
func (l Limits) Lowest(o Limits) Limits {
	return Limits{lower(l.Requests, o.Requests), lower(l.Tokens, o.Tokens), lower(l.InFlight, o.InFlight)}
}

func lower[T int | int64](a, b T) T {
	if a == 0 || b == 0 {
		return cmp.Or(a, b)
	}
	return min(a, b)
}

// Fingerprint names an account without telling its key: the same for all ways to write a base URL.
func Fingerprint(base, key string) string {
	if u, err := url.Parse(base); err == nil {
		base = strings.ToLower(u.Scheme+"://"+u.Host) + strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	}
	sum := sha256.Sum256([]byte("wf account\x00" + base + "\x00" + key))
	return hex.EncodeToString(sum[:8])
}

// Reason is what a call waits for.
type Reason string

// The reasons.
const (
	ByRequests   Reason = "requests"    // so many were sent in the window
	ByTokens     Reason = "tokens"      // so many were used in the window
	ByInFlight   Reason = "in_flight"   // so many calls are under way
	ByRetryAfter Reason = "retry_after" // the provider asked to wait
)
