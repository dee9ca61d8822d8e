package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseAge reads a time span as people write the age of a run: 30d, 2w, or as in 12h and 1h30m. A day has 24 hours. A
// number of minutes alone is refused: 6m may be meant as half a year, and what is that old may be deleted.
func ParseAge(s string) (time.Duration, error) {
	for unit, day := range map[string]time.Duration{"d": 1, "w": 7} {
		number, ok := strings.CutSuffix(s, unit)
		if n, err := strconv.ParseUint(number, 10, 16); ok && err == nil && n > 0 && n <= 36500 {
			return time.Duration(n) * day * 24 * time.Hour, nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 && strings.Contains(s, "h") {
		return d, nil
	}
	return 0, fmt.Errorf("%q is no age: want a number of days, weeks or hours, as in 30d, 2w or 12h", s)
}
