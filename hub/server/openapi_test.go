package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"wf/hub/guard"
)

type document struct {
	OpenAPI string
	Paths   map[string]map[string]json.RawMessage
}

type operation struct {
	Summary     string
	OperationID string
	Scope       string `json:"x-scope"`
	Security    *[]any
	RequestBody *struct {
		Content map[string]struct{ Schema json.RawMessage }
	}
	Parameters []struct{ Name, In string }
	Responses  map[string]json.RawMessage
}

func described(t *testing.T) map[string]operation {
	t.Helper()
	b, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(d.OpenAPI, "3.1") {
		t.Errorf("version %q", d.OpenAPI)
	}
	out := map[string]operation{}
	for path, item := range d.Paths {
		for method, raw := range item {
			if method == "parameters" {
				continue
			}
			var o operation
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			out[strings.ToUpper(method)+" "+path] = o
		}
	}
	return out
}

// Every route is described with its scope, and nothing else is.
func TestEveryRouteIsDescribedAndEveryDescribedRouteServed(t *testing.T) {
	served := map[string]string{"POST " + guard.LoginPath: ""} // by the guard
	for _, r := range routes {
		served[r.method+" "+r.path] = string(r.scope)
	}
	said, ids := map[string]string{}, map[string]string{}
	for name, o := range described(t) {
		said[name] = o.Scope
		if o.OperationID == "" || ids[o.OperationID] != "" {
			t.Errorf("%s has the operationId %q, as %s", name, o.OperationID, ids[o.OperationID])
		}
		ids[o.OperationID] = name
		if o.Scope != "" && (o.Responses["401"] == nil || o.Responses["403"] == nil || o.Responses["503"] == nil) {
			t.Errorf("%s does not say how it fails, by status", name)
		}
		if o.Summary == "" {
			t.Errorf("%s says nothing about itself", name)
		}
		if open := o.Security != nil && len(*o.Security) == 0; open != (o.Scope == "") {
			t.Errorf("%s: open is %v, its scope %q", name, open, o.Scope)
		}
	}
	if d := cmp.Diff(served, said); d != "" {
		t.Errorf("− served, + described:\n%s", d)
	}
}

// required are the fields without which a request is refused; all others are optional.
var required = map[string][]string{
	"LoginRequest": {"code"}, "StartRequest": {"workflow"}, "AnswerRequest": nil, "CancelRequest": nil, "ResumeRequest": nil,
	"ForkRequest": nil, "MessageRequest": {"source", "text"},
	"RecallRequest": nil, "RememberRequest": nil, "ChangeMemoriesRequest": nil, "ReindexRequest": nil, "RetryNotificationsRequest": nil, "BlocksRequest": {"blocks"},
}

// The server refuses fields that it does not know, and few must be there: so it is described.
func TestRequestsAreDescribedAsStrictAsTheyAre(t *testing.T) {
	seen := map[string][]string{}
	for route, o := range described(t) {
		if o.RequestBody == nil || o.RequestBody.Content["application/json"].Schema == nil { // an archive
			continue
		}
		var body struct {
			Ref string `json:"$ref"`
		}
		if err := json.Unmarshal(o.RequestBody.Content["application/json"].Schema, &body); err != nil {
			t.Fatalf("%s: %v", route, err)
		}
		name := strings.TrimPrefix(body.Ref, "#/components/schemas/")
		s := schemas(t)[name]
		if more := s.AdditionalProperties; more == nil || *more {
			t.Errorf("%s takes %q, which allows any field", route, name)
		}
		seen[name] = s.Required
	}
	if d := cmp.Diff(required, seen); d != "" {
		t.Errorf("− refused without, + described as required (an optional field has omitempty in its tag):\n%s", d)
	}
}

type component struct {
	AdditionalProperties *bool
	Required             []string
}

func schemas(t *testing.T) map[string]component {
	t.Helper()
	b, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Components struct{ Schemas map[string]component }
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d.Components.Schemas
}

// Every schema compiles, and every reference leads somewhere.
func TestTheSchemasCompile(t *testing.T) {
	b, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("wf:///openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	for name := range schemas(t) {
		if _, err := c.Compile("wf:///openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, ref := range strings.Split(string(b), `"$ref":"#`)[1:] {
		at, _, _ := strings.Cut(ref, `"`)
		var v any = doc
		for _, key := range strings.Split(at, "/")[1:] {
			m, ok := v.(map[string]any)
			if v = m[key]; !ok || v == nil {
				t.Errorf("%s leads nowhere", at)
				break
			}
		}
	}
}
