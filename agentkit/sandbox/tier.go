package sandbox

import (
	"fmt"
	"strings"
)

// Tier is what this machine can hold, and why not more.
type Tier struct {
	Name       string   // "landlock-7+seccomp+netns", "landlock-7+seccomp", "none"
	ABI        int      // version of Landlock, 0 is none
	Namespaces bool     // commands have their own user, pid, mount, ipc and network namespaces
	Holds      bool     // commands can be confined
	Reasons    []string // why there is no more than this, for people; empty where all walls stand
}

// None is the name of a tier that does not hold, Off of a sandbox that was turned off aloud.
const (
	None = "none"
	Off  = "off"
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

// Describe is the policy in force, as it stands below the output of a command that met a wall.
func (t Tier) Describe(p Policy) string {
	network := "no network"
	switch {
	case p.Network:
		network = "network allowed"
	case t.Namespaces:
		network = "no network but its own loopback"
	}
	return fmt.Sprintf("[sandbox %s: writes only in the workspace, %s]", t.Name, network)
}

// refusal is the error of a tier that does not hold.
func (t Tier) refusal() error {
	return fmt.Errorf("%w: %s", ErrUnavailable, strings.Join(t.Reasons, "; "))
}
