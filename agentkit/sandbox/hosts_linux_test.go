package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
)

// onHosts is a stage whose commands reach some endpoints.
func onHosts(t *testing.T, hosts ...string) (s stage, met *[]string) {
	t.Helper()
	if !sandbox.Probe().Namespaces {
		t.Skip("needs a network namespace: ", sandbox.Probe())
	}
	s, met = newStage(t, sandbox.Run, true), new([]string)
	s.policy.Hosts, s.policy.Met = hosts, func(text string) { *met = append(*met, text) }
	return s, met
}

// A command reaches what its list names, by the proxy alone and with the server's own certificate.
func TestACommandReachesItsHostsAlone(t *testing.T) {
	serve := func() *httptest.Server {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }))
		t.Cleanup(server.Close)
		return server
	}
	listed, other := serve(), serve()
	to, not := listed.Listener.Addr().String(), other.Listener.Addr().String()
	s, met := onHosts(t, to)
	s.policy.Environ = append(s.policy.Environ, "TARGETS="+to+" "+not)
	got := said(s.works(`WF_ATTACK=way "$SELF"`))
	if got[to] != "ok" {
		t.Errorf("the listed host: %s", got[to])
	}
	if want := fmt.Sprintf("%x", sha256.Sum256(listed.Certificate().Raw)); got["certificate"] != want {
		t.Errorf("the certificate is %s, want %s", got["certificate"], want)
	}
	if want := not + ` was refused: network: ["` + not + `"] on the role allows it`; !strings.HasSuffix(got[not], want) {
		t.Errorf("the other host: %s", got[not])
	}
	for _, name := range []string{"direct " + to, "direct " + not, "listen in its place"} {
		if got[name] == "ok" || got[name] == "" {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if len(*met) != 1 || !strings.HasPrefix((*met)[0], not+" was refused") {
		t.Errorf("reported: %q", *met)
	}
	if d := sandbox.Probe().Describe(s.policy); !strings.Contains(d, "network: "+to) {
		t.Errorf("the policy is described as %s", d)
	}
}

// What was started in the background ends with the command, and so does what it left open.
func TestTheEndOfACommandClosesItsTunnels(t *testing.T) {
	heard := make(chan error, 1)
	at := serveEach(t, func(c *net.TCPConn) {
		io.WriteString(c, "hello\n")
		_, err := io.Copy(io.Discard, c)
		heard <- err
	})
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip(err)
	}
	s, _ := onHosts(t, at)
	s.works(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/27180; printf "CONNECT ` + at + ` HTTP/1.1\r\n\r\n" >&3; sleep 1000 & read -u 3 a; read -u 3 b; read -u 3 c; test "$c" = hello'`)
	<-heard
}

// The environment names the proxy in both cases, and caches are those of a command with the network.
func TestTheEnvironmentNamesTheProxy(t *testing.T) {
	s, _ := onHosts(t, "api.example.com:443")
	cache := filepath.Join(s.home, "gocache")
	s.write(filepath.Join(cache, "trim.txt"), "of the user")
	t.Setenv("GOCACHE", cache)
	got := s.works(`env; test ! -e "$GOCACHE/trim.txt"; test ! -e ` + cache)
	for _, want := range []string{"HTTP_PROXY=http://127.0.0.1:27180", "http_proxy=http://127.0.0.1:27180", "HTTPS_PROXY=http://127.0.0.1:27180", "https_proxy=http://127.0.0.1:27180",
		"NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY=1"} {
		if !strings.Contains("\n"+got+"\n", "\n"+want+"\n") {
			t.Errorf("%s is not in the environment", want)
		}
	}
	s.policy.Hosts = nil
	if got := s.works("env"); strings.Contains(strings.ToLower(got), "_proxy=") {
		t.Errorf("without a list there is a proxy in %s", got)
	}
}

// The listener itself stays out of the command's hands.
func TestACommandWithHostsInheritsNothing(t *testing.T) {
	s, _ := onHosts(t, "api.example.com:443")
	if got := s.works(`WF_ATTACK=descriptors "$SELF" < /dev/null`); strings.Contains(got, "socket") {
		t.Errorf("the command has %s", got)
	}
}

// Without a network namespace nothing runs with a list that cannot hold.
func TestAListOfHostsNeedsANetworkNamespace(t *testing.T) {
	if !sandbox.Probe().Holds || sandbox.Probe().ABI < 6 {
		t.Skip("no sandbox here: ", sandbox.Probe())
	}
	s := newStage(t, sandbox.RunWithoutNamespaces, false)
	s.policy.Hosts = []string{"api.example.com:443"}
	var out bytes.Buffer
	_, err := s.run(t.Context(), s.policy, []string{"sh", "-c", "echo x > made"}, &out, &out)
	if !errors.Is(err, sandbox.ErrUnavailable) || s.exists(filepath.Join(s.work, "made")) {
		t.Errorf("%v: %s", err, out.String())
	}
}
