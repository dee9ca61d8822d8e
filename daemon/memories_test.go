package daemon_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/server"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
	"wf/service/servicetest"
	"wf/store"
)

// local is the service of an empty store.
func local(t *testing.T) *service.Local {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]string{"HOME": dir, "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"} {
		t.Setenv(name, value)
	}
	t.Chdir(dir)
	s, err := cas.Open(t.Context(), dir+"/store", cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := &compose.Setup{}
	t.Cleanup(func() {
		u.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &service.Local{Setup: u, Store: s, Engine: u.Engine(s, nil)}
}

// asked is the service l as a client of a server sees it.
func asked(t *testing.T, l *service.Local, by guard.Identity) api.Service {
	t.Helper()
	g := &guard.Guard{Peer: by, MaxBody: server.MaxBody}
	h := httptest.NewUnstartedServer(nil)
	g.Hosts = []string{h.Listener.Addr().String()}
	h.Config.Handler = g.Wrap((&server.Server{Service: l, Feed: l.Store}).Handler())
	h.Start()
	t.Cleanup(h.Close)
	a, err := client.New(h.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client.Service{API: a}
}

var owner = guard.Identity{Name: "ada", Scopes: guard.AllScopes}

func TestMemoriesInProcessAndOverHTTP(t *testing.T) {
	t.Run("in process", func(t *testing.T) {
		servicetest.Memory(t, func(t *testing.T) api.Service { return local(t) })
	})
	t.Run("over HTTP", func(t *testing.T) {
		servicetest.Memory(t, func(t *testing.T) api.Service { return asked(t, local(t), owner) })
	})
}

func TestTasksInProcessAndOverHTTP(t *testing.T) {
	t.Run("in process", func(t *testing.T) {
		servicetest.Tasks(t, func(t *testing.T) (api.Service, store.Store) { l := local(t); return l, l.Store })
	})
	t.Run("over HTTP", func(t *testing.T) {
		servicetest.Tasks(t, func(t *testing.T) (api.Service, store.Store) { l := local(t); return asked(t, l, owner), l.Store })
	})
}

// What a token may do to memories: a reader sees them all and changes none; neither it nor one that starts runs
// has a model asked that the owner did not choose.
func TestATokenDoesToMemoriesWhatItsScopesAllow(t *testing.T) {
	l := local(t)
	one := []api.Note{{Content: "one", Tags: []string{"x"}}}
	if _, err := l.Remember(t.Context(), api.Remember{Scope: "paid", Model: "openai/nomic", Notes: one}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Remember(t.Context(), api.Remember{Scope: "free", Notes: one}); err != nil {
		t.Fatal(err)
	}
	reader := asked(t, l, guard.Identity{Name: "bob", Scopes: []guard.Scope{guard.Read}})
	runner := asked(t, l, guard.Identity{Name: "carl", Scopes: []guard.Scope{guard.Read, guard.Run}})
	ctx := t.Context()
	for _, c := range []struct {
		what string
		do   func() error
		want error
	}{
		{"a reader lists", func() error { _, err := reader.Memories(ctx, api.MemoryQuery{Scope: "paid"}); return err }, nil},
		{"a reader searches by tags", func() error {
			_, err := reader.Recall(ctx, api.Recall{Scope: "paid", Tags: []string{"x"}})
			return err
		}, nil},
		{"a reader searches where the built-in model embeds", func() error {
			_, err := reader.Recall(ctx, api.Recall{Scope: "free", Text: "one"})
			return err
		}, nil},
		{"a reader has a model asked", func() error {
			_, err := reader.Recall(ctx, api.Recall{Scope: "paid", Text: "one"})
			return err
		}, protocol.ErrForbidden},
		{"a reader names the built-in model", func() error {
			_, err := reader.Recall(ctx, api.Recall{Scope: "free", Text: "one", Model: "lexical/ngrams-1"})
			return err
		}, nil},
		{"a runner has a model asked, which is down", func() error {
			_, err := runner.Recall(ctx, api.Recall{Scope: "paid", Text: "one"})
			return err
		}, protocol.ErrModel},
		{"a reader remembers", func() error {
			_, err := reader.Remember(ctx, api.Remember{Scope: "free", Notes: one})
			return err
		}, protocol.ErrForbidden},
		{"a runner remembers", func() error {
			_, err := runner.Remember(ctx, api.Remember{Scope: "free", Notes: []api.Note{{Content: "of Carl"}}})
			return err
		}, nil},
		{"a runner chooses a model", func() error {
			_, err := runner.Remember(ctx, api.Remember{Scope: "new", Model: "openai/nomic", Notes: one})
			return err
		}, protocol.ErrForbidden},
		{"a runner chooses one to index with", func() error {
			_, err := runner.Reindex(ctx, api.Reindex{Scope: "free", Model: "openai/nomic"}, nil)
			return err
		}, protocol.ErrForbidden},
		{"a runner goes back to the built-in model", func() error {
			_, err := runner.Reindex(ctx, api.Reindex{Scope: "paid", Model: "lexical/ngrams-1"}, nil)
			return err
		}, nil},
	} {
		if err := c.do(); c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	free, err := l.Memories(ctx, api.MemoryQuery{Scope: "free"})
	if err != nil || len(free.Items) != 2 || free.Items[0].By != "carl" {
		t.Errorf("who remembered is recorded: %+v, %v", free, err)
	}
}
