package guard

import (
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A remote host may fail so often at once, and then once per failEvery. The right credentials
// are let in all the same: a client that fails on purpose must not lock the owner out.
const (
	failBurst = 10
	failEvery = 2 * time.Second
	maxHosts  = 1024 // remembered at once
)

// failures counts wrong credentials by remote host.
type failures struct {
	mu    sync.Mutex
	hosts map[string]*rate.Limiter
}

// spend counts a failure; false says that there were too many, and retry how long to wait.
func (f *failures) spend(remote string, now time.Time) (ok bool, retry time.Duration) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts == nil {
		f.hosts = map[string]*rate.Limiter{}
	}
	l := f.hosts[host]
	if l == nil {
		if len(f.hosts) >= maxHosts {
			f.forget(now)
		}
		l = rate.NewLimiter(rate.Every(failEvery), failBurst)
		f.hosts[host] = l
	}
	if l.AllowN(now, 1) {
		return true, 0
	}
	return false, failEvery
}

// forget drops the hosts that have not failed for long; all of them if there are none: a flood
// from many addresses must not fill the memory.
func (f *failures) forget(now time.Time) {
	for h, l := range f.hosts {
		if l.TokensAt(now) >= failBurst {
			delete(f.hosts, h)
		}
	}
	if len(f.hosts) >= maxHosts {
		clear(f.hosts)
	}
}

// remoteOf is where a request comes from, for the log.
func remoteOf(r *http.Request) string {
	if r.RemoteAddr == "" || r.RemoteAddr == "@" {
		return "unix"
	}
	return r.RemoteAddr
}
