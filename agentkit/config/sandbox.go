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
//	  limits: {file_size: 1073741824, open_files: 4096, processes: 512, memory: 4294967296, disk: 10737418240}
type Sandbox struct {
	Read   []string      `json:"read"` // files and directories that may be read too: absolute, or below ~/
	Limits SandboxLimits `json:"limits"`
}

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
	return nil
}

// over puts what one config says over another: paths are added, limits replaced.
func (s Sandbox) over(under Sandbox) Sandbox {
	out := Sandbox{Read: slices.Concat(under.Read, s.Read), Limits: under.Limits}
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
