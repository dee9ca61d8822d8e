package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"wf/api"
	"wf/hub/client"
)

// server answers a start with its name, once it was asked by its token. It breaks off the first starts.
func server(t *testing.T, name string, breaks int) (*client.API, *httptest.Server, func() []string) {
	var mu sync.Mutex
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-"+name {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if bodies = append(bodies, string(b)); len(bodies) <= breaks {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":"R-%s"}`, name)
	}))
	t.Cleanup(s.Close)
	a, err := client.New(s.URL, client.Options{Token: "token-" + name})
	if err != nil {
		t.Fatal(err)
	}
	return a, s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(bodies)
	}
}

// Of two servers the second one is spoken to when the first one is gone, each with its own token and with the whole body.
func TestSeveralServers(t *testing.T) {
	a, first, gotA := server(t, "a", 0)
	b, second, gotB := server(t, "b", 0)
	both := client.Several([]*client.API{a, b})
	defer both.Close()
	start := func(want string) {
		t.Helper()
		run, _, err := both.Submit(t.Context(), &api.Start{Workflow: "w", RequestID: "r"}, nil)
		if err != nil || string(run) != want {
			t.Errorf("have %s, %v; want %s", run, err, want)
		}
	}
	start("R-a")
	first.Close()
	start("R-b")
	start("R-b")
	if len(gotA()) != 1 || len(gotB()) != 2 || !strings.Contains(gotB()[0], `"request_id":"r"`) {
		t.Errorf("the first one was asked %q, the second one %q", gotA(), gotB())
	}
	second.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := both.Submit(ctx, &api.Start{Workflow: "w", RequestID: "r"}, func(w client.Waiting) {
		if !errors.Is(w.Err, client.ErrUnreachable) {
			t.Errorf("have error %v", w.Err)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("have error %v", err)
	}
}

// A request that a server may have taken is not sent to another one by itself.
func TestARequestThatWasSentIsNotSentAgain(t *testing.T) {
	a, _, gotA := server(t, "a", 10)
	b, _, gotB := server(t, "b", 0)
	both := client.Several([]*client.API{a, b})
	defer both.Close()
	if _, err := both.CancelJob(t.Context(), "j"); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("have error %v", err)
	}
	if len(gotA()) != 1 || len(gotB()) != 0 {
		t.Errorf("%d and %d requests", len(gotA()), len(gotB()))
	}
	if _, err := both.CancelJob(t.Context(), "j"); err != nil || len(gotB()) != 1 {
		t.Errorf("the next one: %v, %d requests", err, len(gotB()))
	}
}
