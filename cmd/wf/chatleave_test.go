package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/daemon"
	"wf/engine"
	"wf/protocol"
	"wf/store"
)

// atHomeWithoutKeys is an app in a directory with a home of its own and no key in the environment.
func atHomeWithoutKeys(t *testing.T) (*app, store.Store) {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]string{"HOME": dir, "WF_STORE": filepath.Join(dir, ".wf"), "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": "",
		"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""} {
		t.Setenv(name, value)
	}
	t.Chdir(dir)
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.Quiet = true
	s, err := a.OpenStore(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, s
}

func TestAChatWithoutAModelSaysSoInPlainWords(t *testing.T) {
	a, s := atHomeWithoutKeys(t)
	err := a.chatOn(t.Context(), s, "", chatFlags{})
	if err == nil || err.Error() != "there is no model to talk with: none was named, and no key is set" || statusOf(err) != 4 {
		t.Errorf("it says %v, exit %d", err, statusOf(err))
	}
	for _, way := range []string{"ANTHROPIC_API_KEY", "--model PROVIDER/MODEL", ".wf/config.yaml"} {
		if !strings.Contains(protocol.HintOf(err), way) {
			t.Errorf("nothing of %s in %q", way, protocol.HintOf(err))
		}
	}
}

// A run that a screen drove stops when the screen is left, and no word is said of a daemon.
func TestARunWhoseScreenIsLeftSaysSo(t *testing.T) {
	a, s := atHomeWithoutKeys(t)
	write(t, ".", "slow.yaml", "wf: 1\nname: slow\nroles: {a: {run: \"echo >began; sleep 100\", timeout: 2m}}\n")
	var run protocol.RunID
	err := daemon.Private(a.Setup, s, ".", func(d *daemon.Daemon) error {
		def, _, err := a.chatDefinition("slow.yaml", false)
		if err != nil {
			return err
		}
		if run, _, err = d.Service.Launch(t.Context(), def, nil, engine.Launch{}); err != nil {
			return err
		}
		for !isFile("began") {
			if err := t.Context().Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	st, err := a.Engine(s, nil).State(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if why := st.Reason(); st.Status() != protocol.Suspended || strings.Contains(why, "wf serve") || !strings.Contains(why, "its screen was left") {
		t.Errorf("it is %s: %s", st.Status(), why)
	}
}
