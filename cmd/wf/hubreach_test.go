package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
)

// A hub of this machine is reached by its socket, without a token, under the addresses at which it
// listens. What its data directory holds goes to no other address.
func TestTheHubOfThisMachineIsReachedByItsSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // the user's home
	hub := startProcess(t, dir, "hub", "--listen", "127.0.0.1:0")
	var said api.HubServing
	if err := json.Unmarshal(hub.line, &said); err != nil {
		t.Fatal(err)
	}
	ls := func(url string) (string, error) {
		out, err := wfIn(dir, "ls", "--hub", url, "-o", "json").CombinedOutput()
		return string(out), err
	}
	url := said.Listen[0].URL
	if out, err := ls(url); err != nil || !strings.Contains(out, `"items"`) {
		t.Errorf("%s: %v %s", url, err, out)
	}
	// The port of the token is not the hub's.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := "http://" + l.Addr().String()
	if out, err := ls(other); err == nil || !strings.Contains(out, "the stored one is for "+url) || !strings.Contains(out, "--hub-token-file") {
		t.Errorf("%s: %v %s", other, err, out)
	}
	// Without its socket the stored token goes over TCP, to a process of the same user.
	if err := os.Remove(filepath.Join(said.Data, "wf.sock")); err != nil {
		t.Fatal(err)
	}
	if out, err := ls(url); err != nil || !strings.Contains(out, `"items"`) {
		t.Errorf("%s, by TCP: %v %s", url, err, out)
	}
}
