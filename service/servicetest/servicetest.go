// Package servicetest is the conformance suite of services: what every api.Service must do, in this process
// and over HTTP.
package servicetest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"wf/api"
	"wf/protocol"
)

// A Service is what is tested.
type Service interface {
	api.Service
	api.Follower
}

// Suite makes the services that are tested.
type Suite struct {
	// Open makes a service with a store of its own, which starts the workflows of dir and has dir as its workspace.
	// Its asker may do everything.
	Open func(t *testing.T, dir string) Service
	// Remote is a service whose asker is elsewhere: what it brings is not trusted.
	Remote bool
}

// Test tests the services of a suite.
func Test(t *testing.T, s Suite) {
	for name, test := range map[string]func(*testing.T, Suite){
		"archives": archives, "damaged archives": damaged, "foreign runs": foreign, "forks": forks, "deletions": deletions, "definitions": definitions,
		"names": names, "searches": searches, "long texts": long, "pages of runs": pages, "chosen steps": chosen, "request ids": requests,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// gate is a workflow that sets a value, waits for a person, and sets another one.
const gate = `wf: 1
name: gate
inputs: {topic: {type: string, default: roads}}
limits: {steps: 20}
roles:
  first: {set: {said: "${{ 'About ' + inputs.topic }}"}}
  gate: {ask: "Go on?"}
  last: {set: {said: "${{ 'Done with ' + inputs.topic }}"}}
edges:
  - {from: START, to: first}
  - {from: first, to: gate}
  - {from: gate, to: last}
  - {from: last, to: END}
`

// open makes a service that can start gate.
func (s Suite) open(t *testing.T) Service {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gate.yaml"), []byte(gate), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.Open(t, dir)
}

// begin starts gate, and returns when it waits.
func begin(t *testing.T, s Service, topic string) protocol.RunID {
	t.Helper()
	run, _, err := s.Start(t.Context(), api.Start{Workflow: "gate", Inputs: map[string]json.RawMessage{"topic": must(json.Marshal(topic))(t)}})
	if err != nil {
		t.Fatal(err)
	}
	park(t, s, run)
	return run
}

// park follows a run until it waits or has ended.
func park(t *testing.T, s Service, run protocol.RunID) *api.Run {
	t.Helper()
	if err := s.Follow(t.Context(), run, api.Following{Until: api.Parked}, func(api.Update) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return shown(t, s, run)
}

func shown(t *testing.T, s Service, run protocol.RunID) *api.Run {
	t.Helper()
	return must(s.Run(t.Context(), run, api.Window{}))(t)
}

func exported(t *testing.T, s Service, run protocol.RunID) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Export(t.Context(), run, api.ExportOptions{}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func imported(ctx context.Context, s Service, archive []byte, o api.ImportOptions) (*api.Imported, error) {
	return s.Import(ctx, bytes.NewReader(archive), o)
}

// fails tells whether an error has the code of a sentinel, and says what to do.
func fails(t *testing.T, what string, err error, want *protocol.Error) {
	t.Helper()
	if protocol.CodeOf(err) != want.Code || err.Error() == "" || protocol.HintOf(err) == "" {
		t.Errorf("%s: %v (%s), want %s", what, err, protocol.HintOf(err), want.Code)
	}
}
