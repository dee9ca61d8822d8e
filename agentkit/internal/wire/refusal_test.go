package wire

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterIsReadInAllItsForms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for name, c := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"none":                                 {nil, 0},
		"seconds":                              {map[string]string{"Retry-After": "7"}, 7 * time.Second},
		"a fraction":                           {map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		"milliseconds go first":                {map[string]string{"Retry-After": "7", "Retry-After-Ms": "20"}, 20 * time.Millisecond},
		"a date":                               {map[string]string{"Retry-After": at(9 * time.Second)}, 9 * time.Second},
		"a date that has passed":               {map[string]string{"Retry-After": at(-time.Second)}, 0},
		"a date, and our clock an hour behind": {map[string]string{"Retry-After": at(time.Hour + 9*time.Second), "Date": at(time.Hour)}, 9 * time.Second},
		"nonsense":                             {map[string]string{"Retry-After": "soon"}, 0},
		"less than nothing":                    {map[string]string{"Retry-After": "-3"}, 0},
		"no number":                            {map[string]string{"Retry-After": "NaN"}, 0},
	} {
		h := http.Header{}
		for k, v := range c.header {
			h.Set(k, v)
		}
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for _, v := range []string{"Inf", "1e300", "9223372036854775807"} {
		if got := RetryAfter(http.Header{"Retry-After": {v}}, now); got != forever {
			t.Errorf("%s is %v", v, got)
		}
	}
}
