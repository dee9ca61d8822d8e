package config

import (
	"fmt"
	"strings"
	"time"

	"wf/protocol"
)

// ParseAge reads a time span as people write the age of a run: 30d, 2w, or as in 12h and 1h30m. A day has 24 hours. A
// number of minutes alone is refused: 6m may be meant as half a year, and what is that old may be deleted.
func ParseAge(s string) (time.Duration, error) {
	if d, ok := protocol.Span(s); ok && strings.ContainsAny(s, "hdw") {
		return d, nil
	}
	return 0, fmt.Errorf("%q is no age: want a number of days, weeks or hours, as in 30d, 2w or 12h", s)
}
