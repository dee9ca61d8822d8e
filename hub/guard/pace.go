package guard

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"wf/protocol"
)

// ratePrefix begins the word of a token that bounds its requests: rate:60/h.
const ratePrefix = "rate:"

// A pace is how many requests a token may make at once, and in which time it may make as many again. Its logins share it.
type pace struct {
	text  string // 60/h
	limit *rate.Limiter
}

var paceUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// parsePace reads what stands behind rate:.
func parsePace(text string) (*pace, error) {
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	every, known := paceUnits[unit]
	if err != nil || !known || n < 1 || n > 1_000_000 {
		return nil, fmt.Errorf("%q is no rate; want rate:N/s, rate:N/m or rate:N/h, with N from 1 to 1000000: %w", ratePrefix+text, protocol.ErrUsage)
	}
	return &pace{text, rate.NewLimiter(rate.Limit(float64(n)/every.Seconds()), n)}, nil
}

// spend counts a request. An error wraps protocol.ErrRateLimited, and the answer says when there is one again.
func (p *pace) spend(w http.ResponseWriter, name string, now time.Time) error {
	if p == nil {
		return nil
	}
	r := p.limit.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
	w.Header().Set("Retry-After", seconds)
	return protocol.ErrRateLimited.With("try again in "+seconds+" s, or ask the owner for more: "+ratePrefix+" in the file of tokens", "too many requests of %s, whose token has "+ratePrefix+"%s", name, p.text)
}
