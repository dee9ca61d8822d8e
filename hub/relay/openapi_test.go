package relay_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"wf/api"
	"wf/hub/relay"
)

// Every route of the hub is described, with the scope that it wants, and what the hub says of
// workers and jobs is as described.
func TestTheHubIsAsItsDescriptionSays(t *testing.T) {
	h := newHouse(t)
	type operation struct {
		Summary   string
		Scope     string `json:"x-scope"`
		Responses map[string]any
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if status := h.get("/v1/openapi.json", &doc); status != 200 {
		t.Fatal(status)
	}
	described := func(path, method string) (op operation) {
		if raw, ok := doc.Paths[path][strings.ToLower(method)]; ok {
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Error(err)
			}
		}
		return op
	}
	for path, scope := range relay.Routes() {
		method, path, _ := strings.Cut(path, " ")
		if strings.Contains(path, "/{rest") {
			continue // what a worker has there is described there
		}
		op := described(path, method)
		if op.Summary == "" || op.Scope != scope {
			t.Errorf("%s %s: have %+v, want the scope %q", method, path, op, scope)
		}
	}
	if start := described("/v1/runs", "POST"); start.Responses["202"] == nil || start.Responses["201"] == nil {
		t.Error("POST /v1/runs lacks an answer")
	}
	newDesk(h, "a", "fix").arrive()
	newDesk(h, "z", "never").met(h)
	h.await(1)
	go func() { _, _, _ = h.api.Submit(t.Context(), &api.Start{Workflow: "never", RequestID: "r"}, nil) }()
	h.queued(1)
	raw := must(relay.OpenAPI())(t)
	whole := must(jsonschema.UnmarshalJSON(strings.NewReader(string(raw))))(t)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	for path, schema := range map[string]string{"/v1/agents": "Agents", "/v1/queue": "Queue", "/v1/info": "Info", "/v1/workflows": "Workflows", "/v1/runs": "Runs"} {
		var answer json.RawMessage
		h.get(path, &answer)
		v := must(jsonschema.UnmarshalJSON(strings.NewReader(string(answer))))(t)
		if err := must(c.Compile("openapi.json#/components/schemas/" + schema))(t).Validate(v); err != nil {
			t.Errorf("%s: %v\n%s", path, err, answer)
		}
	}
}
