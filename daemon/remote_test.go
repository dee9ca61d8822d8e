package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"wf/protocol"
)

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
	if _, way, err := (Remote{URL: url, TokenFile: file}).Way(); err != nil || way.Token != token || way.Own {
		t.Errorf("named: %+v, %v", way, err)
	}
	if _, way, err := (Remote{URL: url}).Way(); protocol.CodeOf(err) != protocol.ErrUnauthorized.Code {
		t.Errorf("none: %+v, %v", way, err)
	}
	t.Setenv("WF_HUB_TOKEN_FILE", file)
	if _, way, err := (Remote{URL: url}).Way(); err != nil || way.Token != token || !way.Own {
		t.Errorf("from the environment: %+v, %v", way, err)
	}
}
