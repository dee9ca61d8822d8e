package guard

import (
	"cmp"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"wf/hub/internal/lately"
)

// A remote host may fail so often at once, and then once per failEvery. The right credentials
// are let in all the same: a client that fails on purpose must not lock the owner out.
const (
	failBurst = 10
	failEvery = 2 * time.Second
	maxHosts  = 1024 // remembered at once
)

// Failures count wrong credentials by remote host. A flood from many addresses does not fill the memory.
type Failures struct {
	once  sync.Once
	hosts lately.Map[string, *rate.Limiter]
}

// Spend counts a failure; false says that there were too many, and retry how long to wait.
func (f *Failures) Spend(remote string, now time.Time) (ok bool, retry time.Duration) {
	f.once.Do(func() { f.hosts.Max = maxHosts })
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	fresh := rate.NewLimiter(rate.Every(failEvery), failBurst)
	if f.hosts.Update(host, 1, func(old *rate.Limiter) *rate.Limiter { return cmp.Or(old, fresh) }).AllowN(now, 1) {
		return true, 0
	}
	return false, failEvery
}

// remoteOf is where a request comes from, for the log.
func remoteOf(r *http.Request) string {
	if r.RemoteAddr == "" || r.RemoteAddr == "@" {
		return "unix"
	}
	return r.RemoteAddr
}
