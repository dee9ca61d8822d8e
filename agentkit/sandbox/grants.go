package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// agentSocket is where a command finds the socket of the user's ssh-agent.
const agentSocket = "/run/ssh-agent"

// sshAgent is the socket of the user's ssh-agent, links resolved; "" where none is running.
func (h host) sshAgent(tier Tier) (string, error) {
	if !tier.Namespaces {
		return "", fmt.Errorf("%w with an ssh-agent: that needs a mount namespace", ErrUnavailable)
	}
	socket := h.reach(h.value("SSH_AUTH_SOCK", ""))
	if socket == "" {
		return "", nil
	}
	info, err := os.Lstat(socket)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return "", nil // an agent that has ended, or never was one
	}
	return socket, nil
}

// devices are those that are there, links resolved. What is no character device is an error: a block
// device holds the files of others.
func (h host) devices(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		real := h.reach(path)
		if real == "" {
			continue
		}
		info, err := os.Lstat(real)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeCharDevice == 0 {
			return nil, fmt.Errorf("%s is no character device", path)
		}
		out = append(out, real)
	}
	return out, nil
}
