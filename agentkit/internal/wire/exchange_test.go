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

// answering is a transport without a network.
type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// Silence is borne longer before an answer than within it.
func TestF16HowLongSilenceIsBorne(t *testing.T) {
	defer func(t http.RoundTripper) { Client.Transport = t }(Client.Transport)
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
				Client.Transport = answering(func(req *http.Request) (*http.Response, error) {
					r, w := io.Pipe()
					context.AfterFunc(req.Context(), func() { w.CloseWithError(req.Context().Err()) })
					if c.heard {
						go w.Write([]byte("hm"))
					}
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: r}, nil
				})
				err := Call{Name: "m", URL: "http://server", Idle: c.idle}.Do(t.Context(), func(_ context.Context, _ http.Header, r io.Reader) error {
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
