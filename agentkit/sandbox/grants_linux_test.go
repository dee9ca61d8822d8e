package sandbox_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
)

// The agent of the user is reached by commands that it is given to, at a name of its own, and by no
// other; nothing else of its directory comes with it.
func TestTheAgentOfSSHIsGivenByItsNameAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		socket := filepath.Join(s.outside, "agent")
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		t.Setenv("SSH_AUTH_SOCK", socket)
		s.policy.Environ = append(s.policy.Environ, "HOST_TCP=127.0.0.1:1", "HOST_UDP=127.0.0.1:1")
		dial := `HOST_UNIX=${SSH_AUTH_SOCK:-` + socket + `} WF_ATTACK=dial "$SELF"`

		if got := said(s.works(dial))["unix"]; got == "ok" || got == "" {
			t.Errorf("without the grant the agent answers: %q", got)
		}
		s.policy.SSHAgent = true
		if !s.namespaces {
			if _, err := s.run(t.Context(), s.policy, []string{"true"}, nil, nil); !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("without a mount namespace: %v", err)
			}
			return
		}
		if got := said(s.works(dial))["unix"]; got != "ok" {
			t.Errorf("with the grant: %q", got)
		}
		s.denied(`ls "$OUTSIDE"`)
		s.denied(`rm "$SSH_AUTH_SOCK"`)

		// One that has ended, and a way that a command could have laid.
		listener.Close()
		if out := s.works(`echo "at ${SSH_AUTH_SOCK:-none}"`); out != "at none" {
			t.Errorf("an agent that is gone: %q", out)
		}
		if err := os.Symlink(s.outside, filepath.Join(s.work, "way")); err != nil {
			t.Fatal(err)
		}
		if listener, err = net.Listen("unix", socket); err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		t.Setenv("SSH_AUTH_SOCK", filepath.Join(s.work, "way/agent"))
		if out := s.works(`echo "at ${SSH_AUTH_SOCK:-none}"`); out != "at none" {
			t.Errorf("an agent behind a link in the workspace: %q", out)
		}
	})
}

func TestADeviceIsThereWhereItIsGiven(t *testing.T) {
	device := ""
	for _, path := range []string{"/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/kmsg", "/dev/hwrng", "/dev/loop-control"} {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		f.Close()
		device = path
		break
	}
	if device == "" {
		t.Skip("there is no device here that could be given")
	}
	onEach(t, func(t *testing.T, s stage) {
		open := `: <> ` + device
		s.denied(open)
		s.policy.Devices = []string{device, "/dev/there-is-none"}
		s.works(open)
		if code, _ := s.sh(`ls /dev/there-is-none`); code == 0 {
			t.Error("a device was made")
		}
		s.policy.Devices = []string{"/etc/passwd"}
		if _, err := s.run(t.Context(), s.policy, []string{"true"}, nil, nil); err == nil || !strings.Contains(err.Error(), "no character device") {
			t.Errorf("a file as a device: %v", err)
		}
	})
}
