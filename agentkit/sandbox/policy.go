package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"wf/protocol"
)

// ErrUnavailable says that this machine cannot confine commands.
var ErrUnavailable = errors.New("commands cannot be confined on this machine")

// Policy is what one command may do. The zero value but for Workspace is the strictest.
type Policy struct {
	// Workspace is the directory that the command may write, absolute. It must not hold the
	// home directory of the user, unless that is an empty one as in tests and containers.
	Workspace string

	// At is where the command finds Workspace, absolute, where the machine has namespaces: a copy of a directory lies where that
	// does, so that what compilers and caches know of paths holds for it. "" is Workspace itself.
	At string

	// Dir is where the command starts, absolute; "" is Workspace. It lies in Workspace, links
	// resolved: any other is refused.
	Dir string

	// Network lets the command reach the network of this machine over TCP and UDP. Without it
	// there is a loopback of its own, or no network at all where the tier has no namespaces.
	Network bool

	// Hosts are endpoints (protocol.Endpoint) that the command reaches where Network does not let it reach
	// all: over a proxy of Run, which its environment names. They need Tier.Namespaces.
	Hosts []string

	// Met is called by Run before it returns, for each wall that Run itself saw the command meet, with a
	// text that names the key which opens it; nil is not called.
	Met func(text string)

	// Appeared is called by Run before it returns with what the command left in the workspace on which other
	// programs act, if it left any; nil is not called.
	Appeared func(*protocol.Appeared)

	// Lasting is a command that works for several calls, such as a server: what it leaves is reported by those
	// calls, and Appeared is not called.
	Lasting bool

	// Environ are NAME=value pairs on top of what the environment's allow-list lets through.
	Environ []string

	// Trust is for whom the command works: see protocol.Trust.
	Trust protocol.Trust

	// Private is where HOME, TMPDIR and caches of commands lie, apart by trust; it is made, and kept for the next command. "" is a
	// directory in the user's cache: see Trust.
	Private string

	// Plain has the modes of files hold for a command of root, too.
	Plain bool

	// Reused is a command whose result may take the place of performing it later: with the user's cache of go it finds
	// the standard library as SeedTests and SeedGo have built it, and no results of tests.
	Reused bool

	// Stdin is what the command reads; nil is nothing.
	Stdin *os.File

	// Grace is how long the command has between SIGTERM and SIGKILL; 0 is DefaultGrace.
	Grace time.Duration

	Grants

	alone bool // without the user's caches, and with all of Private for itself

	at places // where its directories lie, while it is held
}

// Grants is what a user gives to commands beyond what the walls let through, and how much they may use.
type Grants struct {
	// Read are further files and directories that may be read, absolute.
	Read []string

	// Devices are character devices that may be read and written, absolute. One that is not there is
	// not given.
	Devices []string

	// SSHAgent lets the command use the user's ssh-agent at SSH_AUTH_SOCK. It needs
	// Tier.Namespaces; where there is no agent none is given.
	SSHAgent bool

	Limits Limits
}

// online reports whether the command reaches anything beyond its own loopback.
func (p Policy) online() bool { return p.Network || len(p.Hosts) > 0 }

// Limits are the rlimits of a command, and what it may use in all; 0 is the default of each field. Memory,
// Disk and Processes are sampled: a command that is over one is ended, and may have used more until then.
type Limits struct {
	FileSize  uint64 `json:"file_size"`  // bytes of one file; default 8 GiB
	OpenFiles uint64 `json:"open_files"` // of one process; default 16,384, at most the hard limit of wf
	Processes uint64 `json:"processes"`  // threads included; default 8,192. Sampled too, since root is bound by no number that the kernel holds
	Memory    uint64 `json:"memory"`     // bytes of all processes together; default three quarters of the machine's
	Disk      uint64 `json:"disk"`       // bytes by which all that the command may write can grow together; default no limit
}

// Defaults of Limits.
const (
	DefaultFileSize  = 8 << 30
	DefaultOpenFiles = 16_384
	DefaultProcesses = 8_192
)

// DefaultGrace is how long a command has between SIGTERM and SIGKILL, unless its policy says.
const DefaultGrace = time.Second

// Bounds says how much memory and disk a command has, and how that is held.
func (l Limits) Bounds() string {
	disk := "disk without a limit"
	if l.Disk > 0 {
		disk = fmt.Sprintf("%.1f GB of disk", float64(l.Disk)/1e9)
	}
	return fmt.Sprintf("a command has %.1f GB of memory and %s, by samples four times a second (best effort)", float64(l.filled().Memory)/1e9, disk)
}

func (l Limits) filled() Limits {
	l.FileSize = cmp.Or(l.FileSize, DefaultFileSize)
	if l.OpenFiles == 0 {
		l.OpenFiles = DefaultOpenFiles
	}
	l.Processes = cmp.Or(l.Processes, DefaultProcesses)
	if l.Memory == 0 {
		l.Memory = machineMemory() / 4 * 3
	}
	return l
}
