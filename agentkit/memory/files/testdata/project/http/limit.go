// Package http guards the way in and out.
package http

import (
	"sync"
	"time"
)

// limiter bounds how many requests a client may make in a minute.
type limiter struct {
	mu      sync.Mutex
	rate    int
	clients map[string]*bucket
}

type bucket struct {
	left  int
	since time.Time
}

// allow takes one request of a client off its rate. The API answers 429 where it is used up.
func (l *limiter) allow(client string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.clients[client]
	if b == nil || now.Sub(b.since) > time.Minute {
		b = &bucket{left: l.rate, since: now}
		l.clients[client] = b
	}
	b.left--
	return b.left >= 0
}
