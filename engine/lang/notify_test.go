package lang_test

import (
	"reflect"
	"strings"
	"testing"

	"wf/engine/lang"
	"wf/protocol"
)

func TestSinksOfAWorkflow(t *testing.T) {
	const before, after = "wf: 1\nname: n\nsecrets: [KEY]\n", "\nroles: {a: {set: {x: 1}}}\n"
	load := func(notify string) (*lang.Program, string) {
		p, ds := lang.Load([]byte(before+notify+after), lang.Options{})
		var out strings.Builder
		lang.Render(&out, []byte(before+notify+after), ds, false)
		return p, out.String()
	}
	p, text := load(`notify:
  - {name: z, on: waiting, desktop: true, include: title}
  - {name: a, on: [limit, failed, failed], webhook: "https://x.example.com/", secret: KEY, page: "https://wf.example.com", include: [question, outputs]}
  - {name: c, command: cat, network: ["b.example.com:443", "A.example.com:443", packages]}
  - {name: lan, webhook: "http://alerts.intra:8080/", network: ["alerts.intra:8080"]}
  - {name: loop, webhook: "http://127.0.0.1:9/"}`)
	want := []protocol.Sink{
		{Name: "a", On: []protocol.Moment{"failed", "limit"}, Webhook: "https://x.example.com/", Secret: "KEY", Page: "https://wf.example.com", Include: []string{"outputs", "question"}},
		{Name: "c", Command: "cat", Network: "packages", NetworkHosts: []string{"a.example.com:443", "b.example.com:443"}},
		{Name: "lan", Webhook: "http://alerts.intra:8080/", NetworkHosts: []string{"alerts.intra:8080"}},
		{Name: "loop", Webhook: "http://127.0.0.1:9/"},
		{Name: "z", On: []protocol.Moment{"waiting"}, Desktop: true, Include: []string{"title"}},
	}
	if p == nil || !reflect.DeepEqual(p.Workflow.Notify, want) {
		t.Fatalf("%s\n%+v", text, p)
	}
	without, _ := load("")
	a, err := without.Block()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := p.Block(); err != nil || a.Link == b.Link || strings.Contains(string(a.Data), "notify") {
		t.Error("what is notified is no part of the definition, or is always one", err)
	}
	for notify, wrong := range map[string]string{
		`notify: [{name: a}]`:                                                                     "exactly one of webhook, command and desktop",
		`notify: [{name: a, desktop: true, command: cat}]`:                                        "exactly one of webhook, command and desktop",
		`notify: [{desktop: true}]`:                                                               `lacks the key "name"`,
		`notify: [{name: a/b, desktop: true}]`:                                                    "a/b",
		`notify: [{name: a, desktop: true}, {name: a, command: cat}]`:                             "the sink a is there twice",
		`notify: [{name: a, desktop: true, on: [often]}]`:                                         "often",
		`notify: [{name: a, desktop: true, include: [all]}]`:                                      "all",
		`notify: [{name: a, webhook: "http://example.com/"}]`:                                     "not encrypted",
		`notify: [{name: a, webhook: "https://u:p@example.com/"}]`:                                "holds a password",
		`notify: [{name: a, webhook: "example.com"}]`:                                             "is no address",
		`notify: [{name: a, webhook: "https://example.com/", secret: OTHER}]`:                     "secret OTHER is not declared",
		`notify: [{name: a, command: cat, secret: KEY}]`:                                          "secret signs what is sent to a webhook",
		`notify: [{name: a, desktop: true, network: allow}]`:                                      "network means nothing beside desktop",
		`notify: [{name: a, webhook: "https://example.com/", network: allow}]`:                    "network of a webhook is a list",
		`notify: [{name: a, desktop: true, page: "ftp://x"}]`:                                     "page: ",
		`notify: [{name: a, webhook: "http://alerts.intra:8080/", network: ["alerts.intra:80"]}]`: "not encrypted",
	} {
		if p, text := load(notify); p != nil || !strings.Contains(text, wrong) {
			t.Errorf("%s: want %s, have\n%s", notify, wrong, text)
		}
	}
}
