package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"wf/agentkit/model"
)

// Silence is borne longer before an answer than within it.
func TestF16HowLongSilenceIsBorne(t *testing.T) {
	for name, c := range map[string]struct {
		idle  time.Duration
		heard bool
		want  time.Duration
	}{
		"before the answer":             {0, false, DefaultIdle},
		"within it":                     {0, true, DefaultPause},
		"as it is set":                  {time.Minute, false, time.Minute},
		"as it is set, also within it":  {time.Minute, true, time.Minute},
		"set for longer than by itself": {time.Hour, true, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := Exchange(t.Context(), "m", c.idle, func(ctx context.Context) (*http.Response, error) {
					r, w := io.Pipe()
					context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
					if c.heard {
						go w.Write([]byte("hm"))
					}
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: r}, nil
				}, func(_ http.Header, r io.Reader) error {
					_, err := io.ReadAll(r)
					return err
				})
				if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.Timeout {
					t.Errorf("got %v", err)
				}
				if d := time.Since(start); d != c.want {
					t.Errorf("it took %v, want %v", d, c.want)
				}
			})
		})
	}
}
