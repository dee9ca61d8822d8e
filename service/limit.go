package service

import (
	"math"
	"strconv"
	"strings"
	"time"
	"wf/protocol"
)

// ParseLimit reads name=value as a new limit of a run, set by a user or a caller.
func ParseLimit(given, by string) (protocol.LimitChanged, error) {
	name, value, _ := strings.Cut(given, "=")
	l := protocol.LimitChanged{Limit: name, By: by}
	var err error
	switch name {
	case "steps", "tokens":
		l.Max, err = strconv.ParseInt(value, 10, 64)
	case "cost_usd":
		var dollars float64
		dollars, err = strconv.ParseFloat(value, 64)
		l.Max = int64(math.Round(dollars * 1e6))
	case "duration":
		var d time.Duration
		d, err = time.ParseDuration(value)
		l.Max = d.Microseconds()
	default:
		return l, protocol.ErrUsage.With("", "--limit %q: want steps=, tokens=, cost_usd= or duration=", given)
	}
	if err != nil || l.Max <= 0 || l.Max > mostOfALimit {
		return l, protocol.ErrUsage.With("", "--limit %q: want more than 0 and no more than can be counted, such as steps=60, cost_usd=3 or duration=30m", given)
	}
	return l, nil
}

// mostOfALimit is the largest integer of a record.
const mostOfALimit = 1<<53 - 1
