package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// After the failure of a provider nobody is told to correct the workflow; after any other they are.
func TestAnOutageIsNoFaultOfTheWorkflow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := func(phase, code string) *api.Step {
		return &api.Step{ID: "a#1", Status: "failed", Error: &protocol.ErrorInfo{Phase: phase, Code: code}}
	}
	for name, c := range map[string]struct {
		code    string
		steps   []*api.Step
		correct bool
	}{
		"busy":               {"", []*api.Step{failed("model", "rate_limit")}, false},
		"down":               {"", []*api.Step{failed("model", "server_error"), {Status: "ok"}}, false},
		"a key":              {protocol.ErrModel.Code, nil, false},
		"a wrong request":    {"", []*api.Step{failed("model", "invalid")}, true},
		"a command":          {"", []*api.Step{failed("run", "exit_1")}, true},
		"a command and busy": {"", []*api.Step{failed("model", "rate_limit"), failed("run", "exit_1")}, true},
	} {
		v := &api.Run{ID: "R1", Status: protocol.Suspended, Suspended: protocol.ByError, Code: c.code, Steps: c.steps}
		v.Info.File = file
		if got := Next(v); strings.Contains(got, "correct ") != c.correct || !strings.Contains(got, "wf resume R1") {
			t.Errorf("%s: next is %s", name, got)
		}
	}
}
