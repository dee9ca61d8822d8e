package modeltest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
)

func failures(t *testing.T, w Wire) {
	half := []Piece{{Text: "half"}}
	in := func(status int, message string) *model.Error { return &model.Error{Status: status, Message: message} }
	for name, c := range map[string]struct {
		answer  Answer
		class   model.Class
		status  int
		after   time.Duration
		message string
	}{
		"too many requests":      {Answer{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"error":{"message":"slow down"}}`}, model.RateLimit, 429, 7 * time.Second, "slow down"},
		"retry in ms":            {Answer{Status: 429, Header: map[string]string{"Retry-After-Ms": "1500"}}, model.RateLimit, 429, 1500 * time.Millisecond, "no reason given"},
		"overloaded":             {Answer{Status: 529, Header: map[string]string{"Retry-After": "2"}, Body: "<html>busy</html>"}, model.ServerError, 529, 2 * time.Second, "busy"},
		"internal error":         {Answer{Status: 500, Body: `{"type":"error","error":{"type":"api_error","message":"oops"}}`}, model.ServerError, 500, 0, "oops"},
		"gateway timeout":        {Answer{Status: 504}, model.Timeout, 504, 0, "status 504"},
		"bad key":                {Answer{Status: 401, Body: `{"error":"who are you"}`}, model.Unavailable, 401, 0, "who are you"},
		"unknown model":          {Answer{Status: 404, Body: `{"message":"no such model"}`}, model.Unavailable, 404, 0, "no such model"},
		"bad request":            {Answer{Status: 400, Body: `{"error":{"message":"too long"}}`}, model.Invalid, 400, 0, "too long"},
		"cut off":                {Answer{Say: half, Cut: true}, model.ServerError, 0, 0, "broke off"},
		"no terminator":          {Answer{Say: half, End: true}, model.ServerError, 0, 0, "without"},
		"an empty body":          {Answer{Body: "\n"}, model.ServerError, 0, 0, "without"},
		"an error event":         {Answer{Say: half, Failure: in(500, "out of memory")}, model.ServerError, 500, 0, "out of memory"},
		"a limit in stream":      {Answer{Say: half, Failure: in(429, "later")}, model.RateLimit, 429, 0, "later"},
		"overloaded in stream":   {Answer{Say: half, Failure: in(529, "Overloaded")}, model.ServerError, 529, 0, "Overloaded"},
		"an error for an answer": {Answer{Header: map[string]string{"Content-Type": "application/json"}, Body: `{"type":"error","error":{"type":"overloaded_error","message":"later"}}`}, model.ServerError, -1, 0, "later"},
		"an empty object":        {Answer{Header: map[string]string{"Content-Type": "application/json"}, Body: "{}"}, model.ServerError, 0, 0, "the response holds no"},
		"null for an answer":     {Answer{Header: map[string]string{"Content-Type": "application/json"}, Body: "null"}, model.ServerError, 0, 0, "the response holds no"},
		"an answer without one":  {Answer{Header: map[string]string{"Content-Type": "application/json"}, Body: `{"choices":[],"content":[],"usage":{}}`}, model.ServerError, 0, 0, "the response holds no"},
		"no money, with 429":     {Answer{Status: 429, Header: map[string]string{"Retry-After": "1"}, Body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`}, model.Unavailable, 429, time.Second, "You exceeded your current quota"},
		"no money, with 400":     {Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`}, model.Unavailable, 400, 0, "credit balance"},
		"a web page":             {Answer{Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}, Body: "<html><title>Sign in</title></html>"}, model.Unavailable, 200, 0, "Sign in"},
		"too much":               {Answer{Status: 400, Body: `{"error":{"code":"context_length_exceeded","message":"maximum context length is 8 tokens"}}`}, model.Invalid, 400, 0, "maximum context length"},
		"not JSON":               {Answer{Events: []string{"{"}}, model.ServerError, 0, 0, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := w.open(t, Start(t, c.answer)).GenerateContent(t.Context(), hello())
			var e *model.Error
			if !errors.As(err, &e) || says(r) {
				t.Fatalf("got %v, %v", r, err)
			}
			if e.Class != c.class || c.status >= 0 && e.Status != c.status || e.RetryAfter != c.after || !strings.Contains(e.Error(), c.message) || !strings.Contains(e.Error(), w.Name) {
				t.Errorf("got %+v: %v", e, e)
			}
		})
	}
}

// says reports whether a response holds anything besides what was used.
func says(r *llms.ContentResponse) bool {
	said := model.ReplyOf(r)
	return said.Text != "" || said.Thinking != "" || len(said.Calls) > 0
}

func cancelled(t *testing.T, w Wire) {
	answers := make([]Answer, 200)
	for i := range answers {
		answers[i] = Text("a long answer that is cut")
		answers[i].Stall = i%2 == 0
	}
	m := w.open(t, Start(t, answers...))
	for i := range answers {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := m.GenerateContent(ctx, hello(), llms.WithStreamingFunc(func(context.Context, []byte) error {
			cancel()
			return nil
		}))
		cancel()
		if says(r) && err != nil || err != nil && !errors.Is(err, context.Canceled) || err == nil && answers[i].Stall {
			t.Fatalf("call %d gives %v, %v", i, r, err)
		}
	}
}

func silence(t *testing.T, w Wire) {
	m, err := w.Open(Start(t, Answer{Say: []Piece{{Text: "hm"}}, Stall: true}), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.GenerateContent(t.Context(), hello())
	if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.Timeout || errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A server that goes on with a refusal for ever is not read for ever.
func endlessRefusal(t *testing.T, w Wire) {
	m, err := w.Open(Start(t, Answer{Status: 503, Body: strings.Repeat("busy ", 64<<10), Stall: true}), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.GenerateContent(t.Context(), hello())
	if e := (*model.Error)(nil); !errors.As(err, &e) || e.Status != 503 || e.Class != model.ServerError || !strings.Contains(e.Error(), "busy") {
		t.Errorf("got %v", err)
	}
}

func redirect(t *testing.T, w Wire) {
	elsewhere := Start(t)
	s := Start(t, Answer{Status: 307, Header: map[string]string{"Location": elsewhere.URL}})
	_, err := w.open(t, s).GenerateContent(t.Context(), hello())
	if e := (*model.Error)(nil); !errors.As(err, &e) || e.Status != 307 || len(elsewhere.Requests()) > 0 {
		t.Errorf("got %v", err)
	}
}
