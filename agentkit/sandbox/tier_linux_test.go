package sandbox_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
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

func TestTheLineUnderADenialNamesThePolicy(t *testing.T) {
	for want, p := range map[string]sandbox.Policy{
		"[sandbox landlock-7+seccomp+netns: writes only in the workspace, no network but its own loopback]": {},
		"[sandbox landlock-7+seccomp+netns: writes only in the workspace, network allowed]":                 {Network: true},
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
	b.Run("confined", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.run(b.Context(), s.policy, []string{"true"}, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
