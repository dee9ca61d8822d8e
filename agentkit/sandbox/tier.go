package sandbox

import (
	"fmt"
	"strings"

	"wf/protocol/lazy"
)

// Tier is what this machine can hold, and why not more.
type Tier struct {
	Name       string   // "landlock-7+seccomp+netns", "landlock-7+seccomp", "none"
	ABI        int      // version of Landlock, 0 is none
	Namespaces bool     // commands have their own user, pid, mount, ipc and network namespaces
	Holds      bool     // commands can be confined
	Reasons    []string // why there is no more than this, for people; empty where all walls stand
}

// None is the name of a tier that does not hold, Off of a sandbox that was turned off aloud, Container
// of a machine that its user calls a sandbox itself.
const (
	None      = "none"
	Off       = "off"
	Container = "container"
)

// What a tier needs of Landlock. Version 3 was the first that can forbid truncation, version 6
// the first that keeps signals inside without a pid namespace, version 9 the first that knows
// about sockets with a path.
const (
	abiTruncate = 3
	abiScope    = 6
	abiSockets  = 9
)

// String is the line that people read.
func (t Tier) String() string {
	if len(t.Reasons) == 0 {
		return t.Name
	}
	return t.Name + " (" + strings.Join(t.Reasons, "; ") + ")"
}

// Lacks says why commands cannot have a policy on this machine, or cannot work with it; "" where they can.
func (t Tier) Lacks(p Policy) string {
	switch {
	case !t.Holds:
		return strings.Join(t.Reasons, "; ")
	case p.SSHAgent && !t.Namespaces:
		return "the ssh-agent of your config is given by a mount namespace, and there is none: remove  sockets: [ssh-agent]  there"
	case t.Namespaces || p.Network:
		return ""
	case len(p.Hosts) > 0:
		return "a list of hosts is held by a network namespace, and there is none"
	}
	return "without a network namespace there is no loopback, so that a test which listens fails"
}

// Describe is the policy in force, as it stands below the output of a command that met a wall.
func (t Tier) Describe(p Policy) string {
	network, sees := "no network", ""
	if t.Namespaces {
		sees = " sees only it and the system,"
	}
	switch {
	case p.Network:
		network = "network allowed"
	case len(p.Hosts) > 0:
		network = "network: " + several(p.Hosts) + " by the proxy in HTTPS_PROXY"
	case t.Namespaces:
		network = "no network but its own loopback"
	}
	return fmt.Sprintf("[sandbox %s: writes only in the workspace,%s %s]", t.Name, sees, network)
}

// Met is what stands behind the output of a command that may have met a wall: the policy in force, and the
// keys that open it.
func (t Tier) Met(p Policy) string {
	keys := "network: allow or sandbox: off on the role opens it"
	if p.Network {
		keys = "sandbox: off on the role opens it"
	}
	return t.Describe(p) + " if it met a wall: " + keys +
		", and so does sandbox: {read: [PATH], sockets: [ssh-agent], devices: [PATH]} in a config; what it needs of the environment is written under env"
}

// several names the first few of many.
func several(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// refusal is the error of a tier that does not hold.
func (t Tier) refusal() error {
	return fmt.Errorf("%w: %s", ErrUnavailable, strings.Join(t.Reasons, "; "))
}

// walls is how programs tell that they met one. It may be a wall of somebody else's, too.
var walls = lazy.Regexp(`(?i)permission denied|operation not permitted|read-only file system|\bE(ACCES|PERM|ROFS|NETUNREACH|AI_AGAIN|NOTFOUND)\b|` +
	`network is unreachable|connection refused|could not resolve|authentication agent|name resolution|name or service not known|no such host|` +
	// What the walls hide is not there: a path from the root, from the home directory or upwards.
	`(?m:(^|[\s'"‘:=(])(/|~|\.\./)[^\n]*(no such file or directory|nonexistent)|ENOENT\b)`)

// MetWall reports whether the output of a command looks as if it had met a wall.
func MetWall(output string) bool { return walls().MatchString(output) }
