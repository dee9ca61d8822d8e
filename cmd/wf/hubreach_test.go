package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/protocol"
)

// A hub of this machine is reached by its socket, without a token, under the addresses at which it
// listens. What its data directory holds goes to no other address.
func TestTheHubOfThisMachineIsReachedByItsSocket(t *testing.T) {
	dir := t.TempDir() // the user's home
	hub := startProcess(t, dir, "hub", "--listen", "127.0.0.1:0")
	var said hubJSON
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
	if err := os.Remove(filepath.Join(said.Data, hubSocket)); err != nil {
		t.Fatal(err)
	}
	if out, err := ls(url); err != nil || !strings.Contains(out, `"items"`) {
		t.Errorf("%s, by TCP: %v %s", url, err, out)
	}
}

// A token that the environment names goes over TCP of this machine only to the own user; one that is
// named for the address goes where the user says.
func TestWhichTokensAreBound(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", "")
	const token = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "http://127.0.0.1:8766"
	if way, err := (&app{reach: reachFlags{tokenFile: file}}).reachHub(url); err != nil || way.Token != token || way.Own {
		t.Errorf("named: %+v, %v", way, err)
	}
	if way, err := (&app{}).reachHub(url); protocol.CodeOf(err) != protocol.ErrUnauthorized.Code {
		t.Errorf("none: %+v, %v", way, err)
	}
	t.Setenv("WF_HUB_TOKEN_FILE", file)
	if way, err := (&app{}).reachHub(url); err != nil || way.Token != token || !way.Own {
		t.Errorf("from the environment: %+v, %v", way, err)
	}
}
