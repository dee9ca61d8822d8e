package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/sandbox"
)

// Sandbox says what the commands of agents may do beyond what the sandbox lets them.
//
//	sandbox:
//	  read: [~/models, /srv/data]
//	  sockets: [ssh-agent]
//	  devices: [/dev/kvm]
//	  limits: {file_size: 1073741824, open_files: 4096, processes: 512, memory: 4294967296, disk: 10737418240}
type Sandbox struct {
	Read    []string       `json:"read"`    // files and directories that may be read too: absolute, or below ~/
	Sockets []string       `json:"sockets"` // of the user's programs that may be reached: SSHAgent alone
	Devices []string       `json:"devices"` // character devices that may be read and written, below /dev
	Limits  sandbox.Limits `json:"limits"`  // of one command; 0 is what the sandbox has by itself
}

// SSHAgent is the name of the one socket that can be given. Others are as good as no walls: the one of
// Docker starts programs as root.
const SSHAgent = "ssh-agent"

func (s Sandbox) check() error {
	for _, path := range s.Read {
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~/") {
			return fmt.Errorf("read: %q is neither absolute nor below ~/", path)
		}
	}
	for _, name := range s.Sockets {
		if name != SSHAgent {
			return fmt.Errorf("sockets: %q is not known (want %s; what needs another one, such as Docker's, runs with  sandbox: off  on its role)", name, SSHAgent)
		}
	}
	for _, path := range s.Devices {
		if !strings.HasPrefix(path, "/dev/") || filepath.Clean(path) != path {
			return fmt.Errorf("devices: %q is no path below /dev", path)
		}
	}
	return nil
}

// over puts what one config says over another: paths and names are added, limits replaced.
func (s Sandbox) over(under Sandbox) Sandbox {
	l, of := s.Limits, under.Limits
	return Sandbox{
		Read: slices.Concat(under.Read, s.Read), Sockets: slices.Concat(under.Sockets, s.Sockets), Devices: slices.Concat(under.Devices, s.Devices),
		Limits: sandbox.Limits{
			FileSize: cmp.Or(l.FileSize, of.FileSize), OpenFiles: cmp.Or(l.OpenFiles, of.OpenFiles), Processes: cmp.Or(l.Processes, of.Processes),
			Memory: cmp.Or(l.Memory, of.Memory), Disk: cmp.Or(l.Disk, of.Disk),
		},
	}
}

// Readable are the paths of Read, absolute, with their links: where these lead is found anew for each
// command, which may not have made them. One that holds the home directory, and all keys in
// it, is an error wrapping ErrConfig.
func (s Sandbox) Readable() ([]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	var out []string
	for _, path := range s.Read {
		if below, ok := strings.CutPrefix(path, "~/"); ok {
			if home == "" {
				return nil, fmt.Errorf("sandbox: read: %s: there is no home directory: %w", path, ErrConfig)
			}
			path = filepath.Join(home, below)
		}
		path = filepath.Clean(path)
		real := path
		if r, err := filepath.EvalSymlinks(path); err == nil {
			real = r
		}
		if home != "" && (real == "/" || real == home || strings.HasPrefix(home, real+"/")) {
			return nil, fmt.Errorf("sandbox: read: %s holds your home directory with all its keys; name what is needed in it: %w", path, ErrConfig)
		}
		out = append(out, path)
	}
	return out, nil
}
