package sandbox_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
	"wf/protocol"
)

// Inside of a sandbox no namespaces can be made, so there the tier is the lower one, and with
// an old Landlock there would be none.
func TestATierSaysWhyItIsNoHigher(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		got := strings.Split(s.works(`WF_ATTACK=nested "$SELF"`), "\n")
		if len(got) != 3 {
			t.Fatalf("it said %q", got)
		}
		for i, want := range []string{
			fmt.Sprintf("landlock-%d+seccomp (no user namespace: ", sandbox.Probe().ABI),
			"none false true",
			"commands cannot be confined on this machine: no user namespace: ",
		} {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%q, want %q", got[i], want)
			}
		}
		if !strings.Contains(got[2], "Landlock version 6 is needed (Linux 6.12), here it is 5") {
			t.Errorf("%q names no version", got[2])
		}
	})
}

// The advice names the setting that is in the way.
func TestWhatAllowsNamespacesIsNamed(t *testing.T) {
	for want, settings := range map[string]map[string]string{
		"sudo sysctl -w user.max_user_namespaces=15000":                     {"user.max_user_namespaces": "0", "kernel.unprivileged_userns_clone": "0"},
		"sudo sysctl -w kernel.unprivileged_userns_clone=1":                 {"user.max_user_namespaces": "15000", "kernel.unprivileged_userns_clone": "0"},
		"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0":     {"kernel.unprivileged_userns_clone": "1", "kernel.apparmor_restrict_unprivileged_userns": "1"},
		"a container is started with  --security-opt seccomp=unconfined --": {"user.max_user_namespaces": "15000"},
	} {
		if got := sandbox.AllowNamespacesWith(settings); !strings.HasPrefix(got, want) {
			t.Errorf("with %v: %s", settings, got)
		}
	}
}

func TestTheLineUnderADenialNamesThePolicy(t *testing.T) {
	for want, p := range map[string]sandbox.Policy{
		"[sandbox landlock-7+seccomp+netns: writes only in the workspace, sees only it and the system, no network but its own loopback]": {},
		"[sandbox landlock-7+seccomp+netns: writes only in the workspace, sees only it and the system, network allowed]":                 {Network: true},
	} {
		tier := sandbox.Tier{Name: "landlock-7+seccomp+netns", Namespaces: true}
		if got := tier.Describe(p); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	if tier := sandbox.Probe(); !tier.Holds {
		b.Skip("no sandbox here: ", tier)
	}
	s := newStage(b, sandbox.Run, true)
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	s.policy.Trust = protocol.Trust{Run: "run1", Workflow: "w"}
	b.Run("confined", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.run(b.Context(), s.policy, []string{"true"}, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkGoTest runs the tests of a package that serves HTTP: bare with a warm cache, confined as the
// first command of a workflow in a workspace, and as the first one of a later run.
func BenchmarkGoTest(b *testing.B) {
	if tier := sandbox.Probe(); !tier.Namespaces {
		b.Skip("no namespaces here: ", tier)
	}
	if _, err := exec.LookPath("go"); err != nil {
		b.Skip("no go here")
	}
	s := newStage(b, sandbox.Run, true)
	s.write(filepath.Join(s.work, "go.mod"), "module example.com/it\n\ngo 1.24\n")
	s.write(filepath.Join(s.work, "it_test.go"), strings.ReplaceAll(strings.ReplaceAll(served, "\n\t\"example.com/dep\"\n", ""), "dep.Word()", `"served"`))
	const line = "go test -count=1 ./..."
	bare := func() {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = s.work
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	bare() // the user's cache is warm
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			bare()
		}
	})
	n := 0
	begin := func() protocol.RunID {
		n++
		return protocol.RunID(strconv.Itoa(n))
	}
	end := func() {
		if err := sandbox.Forget(s.policy.Trust.Run); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			run := begin()
			s.policy.Trust = protocol.Trust{Run: run, Workflow: string(run)}
			s.works(line)
			end()
		}
	})
	b.Run("second", func(b *testing.B) {
		s.policy.Trust = protocol.Trust{Run: begin(), Workflow: "again"}
		s.works(line)
		for b.Loop() {
			end()
			s.policy.Trust.Run = begin()
			s.works(line)
		}
	})
}
