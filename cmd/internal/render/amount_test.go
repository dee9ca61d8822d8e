package render

import (
	"testing"
	"time"
)

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 12 * time.Millisecond: "12ms", 4100 * time.Millisecond: "4.1s",
		185 * time.Second: "3m05s", 130 * time.Minute: "2h10m", 72 * time.Hour: "3d",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d: have %s, want %s", d, got, want)
		}
	}
}
