package guard

import (
	"errors"
	"os"
	"strings"
	"testing"

	"wf/protocol"
)

func TestATokenOfAWorkerNamesIt(t *testing.T) {
	s := newStage(t)
	line, err := s.keys.AddWorker("desk-1")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := s.keys.AddShared()
	if err != nil {
		t.Fatal(err)
	}
	token, scope, _ := strings.Cut(line, " ")
	if scope != "agent:desk-1" {
		t.Errorf("the line of the worker is %q", line)
	}
	if id, ok := s.keys.byToken(token); !ok || id.Worker != "desk-1" || !id.Allows(Worker) || id.Allows(Read) {
		t.Errorf("the token of the worker is of %+v", id)
	}
	if id, ok := s.keys.byToken(shared); !ok || id.Worker != "" || !id.Allows(Worker) {
		t.Errorf("the shared token is of %+v", id)
	}
	if !s.keys.NamesWorker("desk-1") || s.keys.NamesWorker("desk-2") {
		t.Error("the tokens name other workers")
	}
	for _, id := range []string{"desk-1", "", "a b", "a#b", "../a", strings.Repeat("x", 129)} {
		if _, err := s.keys.AddWorker(id); !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := os.WriteFile(s.keys.Path(), []byte(line+" agent:desk-2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.keys.byToken(token); ok || !s.keys.NamesWorker("any") {
		t.Error("a line with two workers opens something")
	}
}
