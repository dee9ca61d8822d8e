package guard

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"wf/hub/internal/lately"
)

// A peer may fail so often at once, and then once per failEvery. The right credentials
// are let in all the same: a client that fails on purpose must not lock the owner out.
const (
	failBurst = 10
	failEvery = 2 * time.Second
	maxPeers  = 1024 // remembered at once
)

// Failures count wrong credentials by peer. A flood from many addresses does not fill the memory.
type Failures struct {
	once  sync.Once
	peers lately.Map[Peer, *rate.Limiter]
}

// Spend counts a failure; false says that there were too many, and retry how long to wait.
func (f *Failures) Spend(peer Peer, now time.Time) (ok bool, retry time.Duration) {
	f.once.Do(func() { f.peers.Max = maxPeers })
	fresh := rate.NewLimiter(rate.Every(failEvery), failBurst)
	if f.peers.Update(peer, 1, func(old *rate.Limiter) *rate.Limiter { return cmp.Or(old, fresh) }).AllowN(now, 1) {
		return true, 0
	}
	return false, failEvery
}
