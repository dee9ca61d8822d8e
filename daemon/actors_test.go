package daemon_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/engine/lang"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/protocol"
	"wf/service/compose"
)

// actors are the names under which events of a run say that somebody did something, by the type of the event and the field.
func (h *house) actors(run protocol.RunID) map[string]string {
	h.Helper()
	out := map[string]string{}
	for e, err := range h.Service.Store.After(h.Context(), run, 0) {
		if err != nil {
			h.Fatal(err)
		}
		d, err := e.AnyData()
		if err != nil {
			h.Fatal(err)
		}
		text, err := json.Marshal(d)
		if err != nil {
			h.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			h.Fatal(err)
		}
		for name, v := range fields {
			if said, is := v.(string); is && (name == "by" || strings.HasSuffix(name, "_by")) && said != "" && name != "claimed_by" {
				out[string(e.Type)+"."+name] = said
			}
		}
	}
	return out
}

// What the journal says of who did something is the name of the token that did, by whichever route, over TCP, for a login, over the socket and through a hub;
// what a client says of itself is kept as what it says, and nowhere else.
func TestF413WhoDidSomethingIsWhoseTokenItWas(t *testing.T) {
	h := newHouse(t, ownersToken+"\n"+bensToken+" # ben\n"+annasToken+" read run answer # eve\n")
	source := "wf: 1\nname: talk\nlimits: {steps: 1}\nroles:\n  ask: {ask: \"What?\"}\n  again: {ask: \"\"}\nedges:\n  - {from: START, to: ask}\n  - {from: ask, to: again}\n  - {from: again, to: END}\n"
	if p, found := lang.Load([]byte(source), lang.Options{}); p == nil {
		t.Fatal(found)
	}
	if err := os.WriteFile(filepath.Join(h.Service.Dir, "talk.yaml"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	introduced := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // as a hub does it
		h.Handler().ServeHTTP(w, r.WithContext(guard.With(r.Context(), guard.Identity{Name: "ben", Scopes: guard.AllScopes})))
	}))
	defer introduced.Close()
	for _, c := range []struct {
		name, who string
		by        client.Service
	}{
		{"a token", "ben", h.by(h.url, bensToken)},
		{"a login", "ben", h.browser(h.by(h.url, bensToken))},
		{"the owner's token", compose.User(), h.by(h.url, ownersToken)},
		{"the socket", compose.User(), h.by(h.socket, "")},
		{"a hub", "ben", h.by(introduced.URL, "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, s := t.Context(), c.by
			fatal := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			start := api.Start{Workflow: "talk", CreatedBy: "eve", RequestID: "talk-" + c.name}
			run, _, err := s.Start(ctx, start)
			fatal(err)
			h.reached(run, protocol.Waiting)
			again, _, err := s.Start(ctx, start) // the same request
			if err != nil || again != run {
				t.Errorf("sent again: %s, %v", again, err)
			}
			started, err := s.Run(ctx, run, api.Window{})
			fatal(err)
			if started.Info.CreatedBy != c.who || started.Info.ClaimedBy != "eve" {
				t.Errorf("it is of %q, who says %q", started.Info.CreatedBy, started.Info.ClaimedBy)
			}
			_, err = s.Answer(ctx, run, api.Answer{Text: "this", Source: "eve"})
			fatal(err)
			h.reached(run, protocol.Suspended) // by its limit
			fatal(s.Resume(ctx, run, api.Resume{Limits: map[string]json.RawMessage{"steps": json.RawMessage("50")}}))
			h.reached(run, protocol.Waiting)
			fork, err := s.Fork(ctx, run, api.Fork{Step: "ask#1", After: true, Note: "eve", Hold: true})
			fatal(err)
			fatal(s.Send(ctx, run, api.Message{Source: "eve", Text: "that"})) // answers
			h.reached(run, protocol.Done)
			fatal(s.Cancel(ctx, fork.ID, "eve says so"))
			h.reached(fork.ID, protocol.Cancelled)

			queued, _, err := s.Start(ctx, api.Start{Workflow: "gate", CreatedBy: c.who})
			fatal(err)
			if v := h.reached(queued, protocol.Waiting); v.Info.CreatedBy != c.who || v.Info.ClaimedBy != "" {
				t.Errorf("one who says who they are: %+v", v.Info)
			}
			fatal(s.Send(ctx, queued, api.Message{Source: "eve", Text: "waits for an agent"}))

			got := map[string]string{}
			for _, id := range []protocol.RunID{run, fork.ID, queued} {
				for what, who := range h.actors(id) {
					if got[what] = who; who != c.who {
						t.Errorf("%s of %s is %q, want %q", what, id, who, c.who)
					}
				}
			}
			for _, want := range []string{"run_started.created_by", "resumed.by", "limit_changed.by", "answered.by", "forked.by", "cancelled.by", "message.by"} {
				if got[want] == "" {
					t.Errorf("no event has %s: %v", want, got)
				}
			}
			gone, err := s.Delete(ctx, run, api.Delete{Why: "eve"})
			fatal(err)
			if gone.By != c.who {
				t.Errorf("deleted by %q", gone.By)
			}
			kept, err := s.Remember(ctx, api.Remember{Notes: []api.Note{{Content: "eve was here: " + c.name}}})
			fatal(err)
			memory, err := s.Memory(ctx, kept.Scope, kept.IDs[0])
			fatal(err)
			if memory.Memory.By != c.who {
				t.Errorf("remembered by %q", memory.Memory.By)
			}
		})
	}
}
