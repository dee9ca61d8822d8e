package http

import (
	"net/http"
	"strconv"
	"time"
)

// attempts is how often a request that failed is tried, the first time included.
const attempts = 4

// wait is how long to wait before the next attempt: what the server asked for in Retry-After,
// else twice as long each time.
func wait(res *http.Response, attempt int) time.Duration {
	if res != nil {
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
			return time.Duration(seconds) * time.Second
		}
	}
	return 100 * time.Millisecond << attempt
}

// retryable reports whether trying again may help.
func retryable(status int) bool {
	return status == http.StatusTooManyRequests || status >= 500
}
