package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
	"wf/protocol"
)

// leaves writes what a later command would act on, wherever it can write beside the workspace.
const leaves = `for d in "$HOME" "$TMPDIR" /tmp "$GOCACHE" "$XDG_CACHE_HOME" "$npm_config_cache" "$PIP_CACHE_DIR" "$GOMODCACHE" /dev/shm; do
	[ -n "$d" ] && mkdir -p "$d/.left" 2>/dev/null && echo evil > "$d/.left/it" 2>/dev/null && chmod 0755 "$d/.left"
done; true`

// finds prints which of them it finds.
const finds = `for d in HOME TMPDIR GOCACHE XDG_CACHE_HOME npm_config_cache PIP_CACHE_DIR GOMODCACHE; do
	eval "at=\$$d"; [ -e "$at/.left/it" ] && echo "$d"
done; for d in /tmp /dev/shm; do [ -e "$d/.left/it" ] && echo "$d"; done; true`

func TestWhatACommandLeavesIsForItsTrustAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		t.Setenv("XDG_CACHE_HOME", filepath.Join(s.outside, "cache"))
		agent := s.policy
		agent.Trust = protocol.Trust{Run: "run1", Workflow: "release"}
		secret := []string{"TOKEN"}
		with := func(change func(p *sandbox.Policy)) sandbox.Policy {
			p := agent
			change(&p)
			return p
		}
		same := with(func(*sandbox.Policy) {})
		all := map[string]sandbox.Policy{
			"a secret":            with(func(p *sandbox.Policy) { p.Trust.Secrets = secret }),
			"a secret, later":     with(func(p *sandbox.Policy) { p.Trust.Secrets, p.Trust.Run = secret, "run2" }),
			"a secret, elsewhere": with(func(p *sandbox.Policy) { p.Trust = protocol.Trust{Run: "run3", Workflow: "deploy", Secrets: secret} }),
			"another workflow":    with(func(p *sandbox.Policy) { p.Trust.Run, p.Trust.Workflow = "run4", "lint" }),
			"the network":         with(func(p *sandbox.Policy) { p.Network = true }),
			"no run":              with(func(p *sandbox.Policy) { p.Trust = protocol.Trust{} }),
			"a server":            with(func(p *sandbox.Policy) { p.Trust.Secrets = []string{"db/PASSWORD"} }),
		}
		if s.namespaces {
			all["a host"] = with(func(p *sandbox.Policy) { p.Hosts = []string{"example.com:443"} })
		}
		s.policy = agent
		s.works(leaves)
		s.policy = same
		if got := strings.Fields(s.works(finds)); len(got) < 4 {
			t.Errorf("an equal command of the run finds %q alone", got)
		}
		for name, p := range all {
			s.policy = p
			if got := s.works(finds); got != "" {
				t.Errorf("a command with %s finds %q", name, got)
			}
		}
		s.policy = with(func(p *sandbox.Policy) { p.Trust.Run = "run5" })
		for _, at := range strings.Fields(s.works(finds)) {
			if at == "HOME" || at == "TMPDIR" || at == "/tmp" || at == "/dev/shm" {
				t.Errorf("a later run of the workflow finds %s", at)
			}
		}
	})
}

func TestWhatARunLeavesGoesWithIt(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		cache := filepath.Join(s.outside, "cache")
		t.Setenv("XDG_CACHE_HOME", cache)
		left := func() []string {
			all, err := filepath.Glob(filepath.Join(cache, "wf/sandbox/*-*"))
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		s.policy.Trust = protocol.Trust{Run: "run1"}
		s.works(`mkdir "$HOME/closed" && echo it > "$HOME/closed/it" && chmod 0000 "$HOME/closed"; ln -s "` + s.work + `" "$HOME/link"; cp /bin/true "$TMPDIR"`)
		if len(left()) != 1 {
			t.Errorf("a run that goes on has %v", left())
		}
		if err := sandbox.Forget("run2"); err != nil || len(left()) != 1 {
			t.Errorf("another run that ends leaves %v (%v)", left(), err)
		}
		if err := sandbox.Forget("run1"); err != nil || len(left()) != 0 {
			t.Errorf("a run that has ended leaves %v (%v)", left(), err)
		}
		if got := s.works(`ls -A "$HOME" "$TMPDIR" | grep -v :`); strings.TrimSpace(got) != "" {
			t.Errorf("a command of the run begins with %q", got)
		}
		if _, err := os.Stat(s.work); err != nil {
			t.Errorf("where a link led: %v", err)
		}

		// Large ones are not waited for, and go all the same.
		s.works(`mkdir -p "$HOME/many" && cd "$HOME/many" && i=0; while [ $i -lt 600 ]; do mkdir $i; i=$((i+1)); done`)
		if err := sandbox.Forget("run1"); err != nil {
			t.Fatal(err)
		}
		if left := s.remains(); len(left) != 0 {
			t.Errorf("after a minute there are %v", left)
		}

		// One command of no run leaves nothing.
		s.policy.Trust = protocol.Trust{}
		s.works(leaves)
		if len(left()) != 0 {
			t.Errorf("a command of no run leaves %v", left())
		}
	})
}
