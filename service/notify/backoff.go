package notify

import "time"

// How long a delivery is attempted.
const (
	firstPause = 5 * time.Second
	lastPause  = time.Hour
	lifetime   = 3 * 24 * time.Hour
)

// pauseAfter is how long a delivery rests after so many attempts that did not work: twice as long each time, up to
// lastPause, less a part of up to a quarter by chance, 0 ≤ chance < 1, so that many do not come back at once.
func pauseAfter(attempts int, chance float64) time.Duration {
	pause := lastPause
	if attempts < 11 { // 5 s · 2¹⁰ is more than an hour
		pause = min(firstPause<<max(attempts-1, 0), lastPause)
	}
	return pause - time.Duration(chance*float64(pause)/4)
}

// due reports whether a time has come, unix µs. No pause is longer than lastPause, whatever a receiver asks for: what is
// further away was noted before the clock was put back.
func due(at, now int64) bool { return at <= now || at-now > lastPause.Microseconds() }

// over reports whether a delivery of an age is not attempted after the next pause any more.
func over(age int64, pause time.Duration) bool {
	return age+pause.Microseconds() > lifetime.Microseconds()
}

// between is the time from one event of a sink to the next, µs, of which the age of a delivery is made. The clock may have
// been set meanwhile, or the machine was off: what is longer than attempts are apart is not counted.
func between(at, next int64) int64 { return min(max(next-at, 0), 2*lastPause.Microseconds()) }
