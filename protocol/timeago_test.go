package protocol_test

import (
	"testing"
	"time"

	"wf/protocol"
)

func TestATimeIsReadAsPeopleWriteIt(t *testing.T) {
	now := time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-05-01T12:00:00Z":           now.Add(-48 * time.Hour),
		"2026-05-01T14:00:00.5+02:00":    now.Add(-48*time.Hour + 500*time.Millisecond),
		"2030-01-01T00:00:00Z":           time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		"30m":                            now.Add(-30 * time.Minute),
		"1h30m":                          now.Add(-90 * time.Minute),
		"7d":                             now.Add(-7 * 24 * time.Hour),
		"2w":                             now.Add(-14 * 24 * time.Hour),
		"1970-01-01T00:00:00.000001Z":    time.UnixMicro(1),
		"2026-05-01T12:00:00.123456789Z": time.Date(2026, 5, 1, 12, 0, 0, 123456000, time.UTC),
	} {
		if got, err := protocol.TimeOrAgo(text, now); err != nil || got != want.UnixMicro() {
			t.Errorf("%s: %v, %v, want %v", text, time.UnixMicro(got).UTC(), err, want)
		}
	}
	for _, bad := range []string{"", "7", "d", "0d", "0s", "-1h", "1.5d", "70000d", "yesterday", "2026-05-01", "1970-01-01T00:00:00Z", "1960-01-01T00:00:00Z", "60000d", "32000w", "65535w"} {
		if got, err := protocol.TimeOrAgo(bad, now); err == nil {
			t.Errorf("%q is %v", bad, time.UnixMicro(got))
		}
	}
}
