package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// A described is a server with its description, which says what there is to be asked wrongly.
type described struct {
	t      *testing.T
	client *http.Client
	run    string // one that there is, and waits
	worker string // at a hub
	doc    struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Parameters map[string]parameter
			Schemas    map[string]shape
		}
	}
	asked int
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	Schema   shape
}

// shape is as much of a schema as a wrong value is made of.
type shape struct {
	Ref        string `json:"$ref"`
	Type       any
	Enum       []any
	Required   []string
	Properties map[string]shape
}

// operation is an operation with what it takes.
type operation struct {
	method, path string
	OperationID  string
	RequestBody  *struct {
		Content map[string]struct{ Schema shape }
	}
	Parameters []parameter
	Responses  map[string]any
}

// describedAt reads the description of the server at a socket.
func describedAt(t *testing.T, socket string) *described {
	t.Helper()
	d := &described{t: t, client: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(socket, "unix:"))
	}}}}
	t.Cleanup(d.client.CloseIdleConnections)
	status, _, body := d.send("GET", "/v1/openapi.json", "", "")
	if err := json.Unmarshal(body, &d.doc); err != nil || status != 200 {
		t.Fatalf("%d %v", status, err)
	}
	return d
}

func (d *described) send(method, target, media, body string) (int, http.Header, []byte) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, "http://wf"+target, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	answer, err := d.client.Do(r)
	if err != nil {
		d.t.Fatalf("%s %.200s: %v", method, target, err)
	}
	got, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20)) // a stream is no refusal
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		d.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, got
}

// operations are those of the description, in order.
func (d *described) operations() (all []operation) {
	for _, path := range slices.Sorted(maps.Keys(d.doc.Paths)) {
		item := d.doc.Paths[path]
		var shared []parameter
		if raw := item["parameters"]; raw != nil {
			d.read(raw, &shared)
		}
		for _, method := range slices.Sorted(maps.Keys(item)) {
			if method == "parameters" {
				continue
			}
			o := operation{method: strings.ToUpper(method), path: path}
			d.read(item[method], &o)
			o.Parameters = append(o.Parameters, shared...)
			for i, p := range o.Parameters {
				if name := p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]; name != "" {
					o.Parameters[i] = d.doc.Components.Parameters[name]
				}
			}
			all = append(all, o)
		}
	}
	return all
}

func (d *described) read(raw []byte, into any) {
	d.t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		d.t.Fatal(err)
	}
}

// named is the schema behind a reference.
func (d *described) named(s shape) shape {
	if s.Ref != "" {
		return d.doc.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	}
	return s
}

// fill puts values into the path of an operation: those given, or ones that are there.
func (d *described) fill(o operation, with map[string]string) string {
	return regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(o.path, func(m string) string {
		name := strings.Trim(m, "{}")
		if v, ok := with[name]; ok {
			return v
		}
		switch {
		case name == "id" && strings.HasPrefix(o.path, "/v1/queue/"), name == "id" && strings.HasPrefix(o.path, "/v1/agents/"), name == "name":
			return "none"
		case name == "id", name == "other":
			return d.run
		case name == "step":
			return "gate%231"
		case name == "memory":
			return "1"
		}
		return "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
	})
}

// notForClients is what no error says to a client of HTTP: the names of types and packages, and what is typed in a
// terminal.
var notForClients = regexp.MustCompile(`\bGo (?:struct|value|type)|\bjson: |\bstrconv\.|\bunmarshal\b|\bint64\b|\bmap\[|%!|<nil>|\b[a-z]+\.[A-Z][a-zA-Z]+\b|\bwf [a-z]+ |(?:^|\s)--[a-z]`)

// refused sends what is wrong, and holds the answer against the description: an error with a code of the table and the
// status of that code, which the operation names.
func (d *described) refused(o operation, what, target, media, body string, statuses ...int) {
	d.t.Helper()
	d.asked++
	if d.worker != "" && !strings.Contains(target, "agent=") && slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.Name == "agent" }) {
		sign := "?"
		if strings.Contains(target, "?") {
			sign = "&"
		}
		target += sign + "agent=" + d.worker
	}
	status, header, got := d.send(o.method, target, media, body)
	where := fmt.Sprintf("%s: %s %.120s, %s", o.OperationID, o.method, target, what)
	var e map[string]any
	if status < 400 {
		d.t.Errorf("%s: %d %.200s", where, status, got)
		return
	}
	if err := json.Unmarshal(got, &e); err != nil || e["schema"] != "wf.error/v1" || header.Get("Content-Type") != "application/json" {
		d.t.Errorf("%s: %d is no error: %.200s", where, status, got)
		return
	}
	code, _ := e["code"].(string)
	if c := protocol.CodeNamed(code); c.Name != code || c.Status != status || status == 500 || !slices.Contains(d.doc.Components.Schemas["Error"].Properties["code"].Enum, any(code)) {
		d.t.Errorf("%s: status %d with the code %s: %s", where, status, code, got)
	}
	if o.Responses != nil && o.Responses[fmt.Sprint(status)] == nil {
		d.t.Errorf("%s: the status %d is not described: %s", where, status, got)
	}
	if len(statuses) > 0 && !slices.Contains(statuses, status) {
		d.t.Errorf("%s: status %d, want one of %v: %s", where, status, statuses, got)
	}
	for _, field := range []string{"message", "fix"} {
		if text, ok := e[field].(string); !ok || text == "" || notForClients.MatchString(text) {
			d.t.Errorf("%s: the %s says %q", where, field, text)
		}
	}
}

// wrong is a value that a schema does not take, as JSON.
func (d *described) wrong(s shape) string {
	s = d.named(s)
	kinds, many := s.Type.([]any)
	if !many {
		kinds = []any{s.Type}
	}
	for _, try := range []struct{ kind, text string }{{"object", `{}`}, {"string", `"x"`}, {"integer", `7`}} {
		if !slices.Contains(kinds, any(try.kind)) && (try.kind != "integer" || !slices.Contains(kinds, any("number"))) {
			if s.Type == nil && len(s.Enum) == 0 { // any of several forms, none of which is a bare true
				return `true`
			}
			return try.text
		}
	}
	return `true`
}

// Each request that is wrong in one way is refused with a code, in words that hold for any client.
func (d *described) refusesWhatIsWrong() {
	for _, o := range d.operations() {
		good := d.fill(o, nil)
		open := o.path == "/healthz" || o.path == "/readyz" || o.path == "/metrics" || o.path == "/v1/openapi.json"
		hook, socket := o.path == "/v1/hooks/{name}", o.path == "/v1/replay" || o.path == "/v1/agent"
		if o.path == "/v1/login" { // of the page, which a server on a socket does not have
			continue
		}
		if !open && !hook && !socket {
			d.refused(o, "a parameter that there is not", good+"?nonsense=1", "application/json", "{}", 400)
		}
		if !open && !hook { // a webhook says nothing but no without a signature
			d.refused(o, "a secret in the address", good+"?token=x", "application/json", "{}", 400)
			d.refused(o, "an address that is cut off", good+"?limit=%2", "application/json", "{}", 400)
			other := operation{method: "PATCH", path: o.path, OperationID: o.OperationID}
			d.refused(other, "a method that there is not", good, "", "", 405)
		}
		for _, p := range o.Parameters {
			if p.In == "path" {
				for _, odd := range []string{"%00", strings.Repeat("x", 3000), "%F0%28", "..%2F..%2Fetc", "none", "none%237", "-1"} {
					if p.Name == "memory" && odd == "none" {
						odd = "99999999999999999999"
					}
					if _, ok := d.doc.Paths[strings.Replace(o.path, "{"+p.Name+"}", odd, 1)]; !ok && !(hook && odd == "none") {
						d.refused(o, "a path", d.fill(o, map[string]string{p.Name: odd}), "application/json", "{}")
					}
				}
				continue
			}
			s := d.named(p.Schema)
			var odd []string
			switch {
			case s.Type == "integer":
				odd = []string{"x", "-1", "1.5", "99999999999999999999"}
			case s.Type == "boolean":
				odd = []string{"maybe"}
			case len(s.Enum) > 0:
				odd = []string{"nonsense"}
			}
			for _, v := range odd {
				d.refused(o, "a value of "+p.Name, good+"?"+p.Name+"="+v, "application/json", "{}", 400)
			}
			if s.Type != "array" {
				d.refused(o, "twice "+p.Name, good+"?"+p.Name+"=1&"+p.Name+"=1", "application/json", "{}", 400)
			}
		}
		if o.RequestBody == nil {
			continue
		}
		content, isJSON := o.RequestBody.Content["application/json"]
		if !isJSON {
			if !hook {
				d.refused(o, "another form", good, "text/plain", "x", 415)
			}
			continue
		}
		d.refused(o, "another form", good, "text/plain", "{}", 415)
		d.refused(o, "a form that is none", good, "application/json;;;", "{}", 415)
		for _, text := range []string{"{", "[]", `"x"`, "7", "{} {}", `{"a":`, "\xff", `{"nonsense":1}`} {
			d.refused(o, text, good, "application/json", text, 400)
		}
		fields := d.named(content.Schema)
		if len(fields.Required) > 0 {
			d.refused(o, "nothing", good, "application/json", "{}", 400)
			d.refused(o, "no body", good, "application/json", "", 400)
		}
		for _, name := range slices.Sorted(maps.Keys(fields.Properties)) {
			text := fmt.Sprintf(`{%q: %s}`, name, d.wrong(fields.Properties[name]))
			d.refused(o, text, good, "application/json", text, 400, 422)
		}
	}
	big := `{"a":"` + strings.Repeat("x", 17<<20) + `"}`
	d.refused(operation{method: "POST", OperationID: "startRun"}, "too long", "/v1/runs", "application/json", big, 413)
	d.refused(operation{method: "POST", OperationID: "remember", Parameters: []parameter{{Name: "agent"}}}, "too long", "/v1/memories/remember", "application/json", big, 413)
}

// What is wrong with a request is said by both servers as their descriptions have it: for each operation and each kind
// of wrong input.
func TestWrongRequestsAreRefusedAsDescribed(t *testing.T) {
	t.Parallel()
	dir := talkDir(t)
	write(t, dir, "gate.yaml", "wf: 1\nname: gate\nroles: {gate: {ask: 'Who?', form: {type: object, properties: {age: {type: integer}}, required: [age]}}}\n")
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "hub"), 0o700); err != nil {
		t.Fatal(err)
	}
	var hub api.HubServing
	if err := json.Unmarshal(startProcess(t, top, "hub", "--listen", "127.0.0.1:0", "--data", filepath.Join(top, "data")).line, &hub); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, dir, "--listen", "unix", "--workflows", dir, "--hub", hub.Listen[0].URL, "--hub-token-file", hub.AgentToken, "--hub-admin")
	run := s.started(map[string]any{"workflow": "gate"})
	s.awaitStatus(run, protocol.Waiting)
	for name, socket := range map[string]string{"serve": s.said.Listen[0].URL, "hub": filepath.Join(top, "data", "wf.sock")} {
		t.Run(name, func(t *testing.T) {
			d := describedAt(t, socket)
			d.run = string(run)
			for status := 0; status != 200; { // the hub hears of the run in a moment
				status, _, _ = d.send("GET", "/v1/runs/"+d.run, "", "")
				if t.Context().Err() != nil {
					t.Fatal(t.Context().Err())
				}
			}
			if name == "hub" {
				var workers struct{ Items []struct{ ID string } }
				_, _, got := d.send("GET", "/v1/agents", "", "")
				if d.read(got, &workers); len(workers.Items) != 1 {
					t.Fatalf("%s", got)
				}
				d.worker = workers.Items[0].ID
			}
			d.refusesWhatIsWrong()
			o := operation{method: "POST", OperationID: "answerRun"}
			at := "/v1/runs/" + d.run
			d.refused(o, "a form that does not fit", at+"/answer", "application/json", `{"fields":{"age":"old"}}`, 422)
			d.refused(o, "a choice where there is none", at+"/answer", "application/json", `{"choice":"x"}`, 422)
			d.refused(o, "a run that waits cannot be suspended", at+"/suspend", "", "", 409)
			d.refused(o, "an input", "/v1/runs", "application/json", `{"workflow":"gate","inputs":{"x":1}}`, 422)
			d.refused(o, "a workflow", "/v1/runs", "application/json", `{"workflow":"none"}`, 404)
			d.refused(o, "a limit", at+"/resume", "application/json", `{"limits":{"steps":0}}`, 400)
			d.refused(o, "no step", at+"/fork", "application/json", `{"step":"gate#9"}`, 404)
			d.refused(operation{method: "GET"}, "no step", at+"/steps/"+url.PathEscape("gate#9"), "", "", 404)
			if _, header, _ := d.send("PUT", at, "", ""); !strings.HasPrefix(header.Get("Allow"), "GET, ") || !strings.HasSuffix(header.Get("Allow"), "DELETE") {
				t.Errorf("Allow: %q", header.Get("Allow"))
			}
			if d.asked < 400 {
				t.Errorf("%d requests", d.asked)
			}
		})
	}
}
