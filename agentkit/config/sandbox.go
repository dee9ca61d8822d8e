package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sandbox says what the commands of agents may do beyond what the sandbox lets them.
//
//	sandbox:
//	  read: [~/models, /srv/data]
//	  sockets: [ssh-agent]
//	  devices: [/dev/kvm]
//	  limits: {file_size: 1073741824, open_files: 4096, processes: 512, memory: 4294967296, disk: 10737418240}
type Sandbox struct {
	Read    []string      `json:"read"`    // files and directories that may be read too: absolute, or below ~/
	Sockets []string      `json:"sockets"` // of the user's programs that may be reached: SSHAgent alone
	Devices []string      `json:"devices"` // character devices that may be read and written, below /dev
	Limits  SandboxLimits `json:"limits"`
}

// SSHAgent is the name of the one socket that can be given. Others are as good as no walls: the one of
// Docker starts programs as root.
const SSHAgent = "ssh-agent"

// SandboxLimits bound one command; 0 is what the sandbox has by itself.
type SandboxLimits struct {
	FileSize  uint64 `json:"file_size"`  // bytes of one file
	OpenFiles uint64 `json:"open_files"` // of one process
	Processes uint64 `json:"processes"`  // threads included
	Memory    uint64 `json:"memory"`     // bytes of all its processes together
	Disk      uint64 `json:"disk"`       // bytes by which what it may write can grow
}

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
	out := Sandbox{Read: slices.Concat(under.Read, s.Read), Sockets: slices.Concat(under.Sockets, s.Sockets),
		Devices: slices.Concat(under.Devices, s.Devices), Limits: under.Limits}
	for _, l := range []struct{ to, from *uint64 }{
		{&out.Limits.FileSize, &s.Limits.FileSize},
		{&out.Limits.OpenFiles, &s.Limits.OpenFiles},
		{&out.Limits.Processes, &s.Limits.Processes},
		{&out.Limits.Memory, &s.Limits.Memory},
		{&out.Limits.Disk, &s.Limits.Disk},
	} {
		if *l.from != 0 {
			*l.to = *l.from
		}
	}
	return out
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
