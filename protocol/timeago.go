package protocol

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// spanDays is how many days a Span in days or weeks has at most.
const spanDays = 36_500

// Span reads a span of time as people write it: 30m, 1h30m, 7d or 2w. A day has 24 hours. ok is false for what is none, or is not longer
// than 0.
func Span(text string) (d time.Duration, ok bool) {
	for unit, days := range map[string]uint64{"d": 1, "w": 7} {
		if number, of := strings.CutSuffix(text, unit); of {
			n, err := strconv.ParseUint(number, 10, 16)
			return time.Duration(n*days) * 24 * time.Hour, err == nil && n > 0 && n*days <= spanDays
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}

// TimeOrAgo reads a time in unix µs as people write it: RFC 3339, or how long before now, as Span reads it.
func TimeOrAgo(text string, now time.Time) (int64, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.UnixMicro() > 0 {
		return t.UnixMicro(), nil
	}
	if d, ok := Span(text); ok {
		if at := now.Add(-d).UnixMicro(); at > 0 {
			return at, nil
		}
	}
	return 0, fmt.Errorf("%.100q: want a time as 2026-05-01T12:00:00Z, or how long ago as 30m, 2h, 7d or 2w", text)
}
