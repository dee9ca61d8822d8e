package protocol

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TimeOrAgo reads a time in unix µs as people write it: RFC 3339, or how long before now, as in 30m, 2h, 7d or 2w. A day has 24 hours.
func TimeOrAgo(text string, now time.Time) (int64, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.UnixMicro() > 0 {
		return t.UnixMicro(), nil
	}
	d, err := time.ParseDuration(text)
	for unit, days := range map[string]time.Duration{"d": 1, "w": 7} {
		number, ok := strings.CutSuffix(text, unit)
		if n, bad := strconv.ParseUint(number, 10, 16); ok && bad == nil {
			d, err = time.Duration(n)*days*24*time.Hour, nil
		}
	}
	at := now.Add(-d).UnixMicro()
	if err != nil || d <= 0 || at <= 0 {
		return 0, fmt.Errorf("%.100q: want a time as 2026-05-01T12:00:00Z, or how long ago as 30m, 2h, 7d or 2w", text)
	}
	return at, nil
}
