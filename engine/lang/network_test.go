package lang_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lang"
	"wf/protocol"
)

// The order, the case and repetitions of a list say nothing, and a definition without one is what it was.
func TestTheListOfHostsHasOneForm(t *testing.T) {
	load := func(network string) protocol.Role {
		p, ds := lang.Load([]byte("wf: 1\nname: n\nroles:\n  a:\n    run: ls\n    network: "+network), lang.Options{})
		if p == nil {
			t.Fatal(network, ds)
		}
		return p.Workflow.Roles[0]
	}
	for network, want := range map[string]protocol.Role{
		"allow":    {Network: "allow"},
		"packages": {Network: "packages"},
		"[b.example.com:443, API.example.com:8443, b.example.com:443]": {NetworkHosts: []string{"api.example.com:8443", "b.example.com:443"}},
		"[packages, '[2001:DB8::0:1]:443', 10.0.0.5:5432]":             {Network: "packages", NetworkHosts: []string{"10.0.0.5:5432", "[2001:db8::1]:443"}},
		"[localhost:8080]": {NetworkHosts: []string{"localhost:8080"}},
	} {
		got := load(network)
		if d := cmp.Diff(append(want.NetworkHosts, want.Network), append(got.NetworkHosts, got.Network)); d != "" {
			t.Errorf("%s: %s", network, d)
		}
	}
	all, hosts := (&protocol.Role{Network: "packages", NetworkHosts: []string{"a.example.com:1", "pypi.org:443"}}).Reach()
	if all || len(hosts) != len(protocol.PackageHosts())+1 || hosts[0] != "a.example.com:1" {
		t.Errorf("it reaches %v, %v", all, hosts)
	}
}

func TestWhatIsNoEndpointIsRefused(t *testing.T) {
	for _, network := range []string{
		"true", "none", "[]", "[allow]", "[api.example.com]", "['*.example.com:443']", "['https://api.example.com:443']", "[api.example.com:443/x]",
		"[api.example.com:0]", "[api.example.com:65536]", "[api.example.com:0443]", "['::1:443']", "['[fe80::1%eth0]:443']", "['[::ffff:127.0.0.1]:80']",
		"[127.1:80]", "[2130706433:80]", "['[127.0.0.1]:80']", "[a..b:80]", "[-a.b:80]", "[3]", "[{a: b}]",
	} {
		p, ds := lang.Load([]byte("wf: 1\nname: n\nroles: {a: {run: ls, network: "+network+"}}"), lang.Options{})
		if p != nil || !slices.ContainsFunc(ds, func(d lang.Diagnostic) bool { return d.Code == "WF002" && strings.Contains(d.Message, "network") }) {
			t.Errorf("%s: %v", network, ds)
		}
	}
}

// The walls of a server's program are said as those of a role.
func TestAServerSaysWhatItsProgramReaches(t *testing.T) {
	for entry, want := range map[string]protocol.MCPServer{
		"command: [a]":                              {Name: "s", Command: []string{"a"}},
		"command: [a], sandbox: off":                {Name: "s", Command: []string{"a"}, Sandbox: "off"},
		"command: [a], sandbox: on, network: allow": {Name: "s", Command: []string{"a"}, Sandbox: "on", Network: "allow"},
		"command: [a], network: [packages, 'B.example:443', 'a.example:443']": {Name: "s", Command: []string{"a"}, Network: "packages", NetworkHosts: []string{"a.example:443", "b.example:443"}},
	} {
		p, ds := lang.Load([]byte("wf: 1\nname: n\nmcp: {s: {"+entry+"}}\nroles: {a: {run: ls}}"), lang.Options{})
		if p == nil {
			t.Errorf("%s: %v", entry, ds)
			continue
		}
		if d := cmp.Diff(want, p.Workflow.MCP[0]); d != "" {
			t.Errorf("%s: %s", entry, d)
		}
	}
	for _, entry := range []string{"url: 'https://a.example', sandbox: off", "url: 'https://a.example', network: allow", "command: [a], sandbox: maybe", "command: [a], network: none", "command: [a], sandbox: off, network: allow"} {
		if p, ds := lang.Load([]byte("wf: 1\nname: n\nmcp: {s: {"+entry+"}}\nroles: {a: {run: ls}}"), lang.Options{}); p != nil || len(ds) == 0 || ds[0].Code != "WF002" {
			t.Errorf("%s: %v", entry, ds)
		}
	}
}
