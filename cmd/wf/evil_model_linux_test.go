package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/roles/frontmatter"
)

// An attack is a line of testdata/evil/attacks.yaml.
type attack struct {
	Finding, Does string
	Say           string          // beside the call
	Tool          string          // that is called
	Args          json.RawMessage // with these
	Denied        string          // an expression for what the journal says of it
	Needs         string          // "namespaces", "" for nothing
	Alone         string          // why it does no harm without walls
}

// command is the line of an attack by the shell, "" for another tool.
func (a attack) command() string {
	var args struct{ Command string }
	if a.Tool != "shell" || json.Unmarshal(a.Args, &args) != nil {
		return ""
	}
	return args.Command
}

// readAttacks gives those that can be tried here, by role. Their @NAMES@ are still to be filled in.
func readAttacks(t *testing.T, namespaces bool) map[string][]attack {
	t.Helper()
	src, err := os.ReadFile("testdata/evil/attacks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data, err := frontmatter.File(string(src))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]attack
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for role, list := range all {
		for _, a := range list {
			if _, err := regexp.Compile(a.Denied); err != nil || a.Denied == "" || a.Finding == "" || a.Does == "" || a.Tool == "" {
				t.Fatalf("%s %q: a part is missing or wrong: %v", a.Finding, a.Does, err)
			}
		}
		all[role] = slices.DeleteFunc(list, func(a attack) bool { return a.Needs == "namespaces" && !namespaces })
	}
	return all
}

// races are calls that go by a directory which another process exchanges meanwhile for a link.
func races() []attack {
	var list []attack
	for range 12 {
		list = append(list, attack{Tool: "read_file", Args: json.RawMessage(`{"path": "race/id_ed25519"}`)}, attack{Tool: "list_files", Args: json.RawMessage(`{"path": "race"}`)},
			attack{Tool: "write_file", Args: json.RawMessage(`{"path": "race/authorized_keys", "content": "evil"}`)})
	}
	return append(list, attack{Tool: "write_file", Args: json.RawMessage(`{"path": "raced", "content": "x"}`)})
}

var speaker = regexp.MustCompile(`You are (\w+)\.`)

// evilModel is a provider with a model that does what the attacks say, one after the other. It is named in the config
// of the user, with a key.
func (w *world) evilModel(attacks map[string][]attack) {
	server := modeltest.Serve(w.t, func(r modeltest.Request) modeltest.Answer {
		if r.Header.Get("Authorization") != "Bearer "+w.names["KEY"] {
			w.t.Errorf("a request came with the key %q", r.Header.Get("Authorization"))
		}
		headers := maps.Clone(r.Header)
		headers.Del("Authorization")
		w.note("a request", modeltest.Request{Path: r.Path, Header: headers, Body: r.Body}.Text(), false)
		role := ""
		if m := speaker.FindSubmatch(r.Body); m != nil {
			role = string(m[1])
		}
		switch role {
		case "mover":
			return modeltest.Answer{Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": "http://127.0.0.1:" + w.names["TCP"] + "/v1/chat/completions"}}
		case "liar":
			return modeltest.Answer{Status: http.StatusBadRequest, Body: w.fill("{\"error\": {\"message\": \"\\u001b]0;evil\\u0007 you sent @KEY@ and @KEY_BASE64@\"}}")}
		}
		list, at := attacks[role], r.Results()
		if at >= len(list) {
			return modeltest.Text("Done \x1b]0;evil\a.")
		}
		a := list[at]
		answer := modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Call: &modeltest.CallPiece{ID: "call", Name: a.Tool, Args: w.fill(string(a.Args))}}, {Finish: "tool_calls"}}}
		if a.Say != "" {
			said := w.fill(a.Say)
			half := len(said) / 2
			answer = answer.After(modeltest.Piece{Text: strings.ToValidUTF8(said[:half], "")}, modeltest.Piece{Text: strings.ToValidUTF8(said[half:], "")})
		}
		return answer
	})
	w.endpoint = server.URL
}
