package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Probe finds the tier of this machine by confining a command that does nothing. The first
// call takes some milliseconds, later ones give what it found. It needs Main to be called by
// the main function of the binary.
func Probe() Tier { return probed().tier }

// found is a tier with the namespaces that make it.
type found struct {
	tier       Tier
	namespaces uintptr // flags of clone(2)
}

// isolation are the namespaces of a command: with a user namespace, or without one for root,
// as that may make the others.
var isolation = func() []uintptr {
	const all = unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if os.Geteuid() == 0 {
		return []uintptr{all | unix.CLONE_NEWUSER, all}
	}
	return []uintptr{all | unix.CLONE_NEWUSER}
}

var probed = sync.OnceValue(func() found {
	none := func(reasons ...string) found {
		return found{tier: Tier{Name: None, ABI: landlockABI(), Reasons: reasons}}
	}
	switch abi := landlockABI(); {
	case !ready:
		return none("the program does not call sandbox.Main at its start")
	case auditArch == 0:
		return none("there is no filter of system calls for this processor")
	case abi == 0:
		return none("the kernel has no Landlock, or it is not among the LSMs that were enabled at boot")
	case abi < abiTruncate:
		return none(fmt.Sprintf("the kernel's Landlock is version %d, and %d is needed (Linux 6.2)", abi, abiTruncate))
	default:
		return attempt(abi)
	}
})

// attempt tries the walls from the strongest set of them to the weakest.
func attempt(abi int) found {
	tier := Tier{Name: None, ABI: abi}
	for _, flags := range isolation() {
		err := try(abi, flags)
		if err == nil {
			return found{Tier{Name: fmt.Sprintf("landlock-%d+seccomp+netns", abi), ABI: abi, Namespaces: true, Holds: true}, flags}
		}
		what := "no user namespace"
		if flags&unix.CLONE_NEWUSER == 0 {
			what = "no namespaces as root"
		}
		tier.Reasons = append(tier.Reasons, what+": "+cause(err))
	}
	if abi < abiScope {
		tier.Reasons = append(tier.Reasons, fmt.Sprintf("and without namespaces Landlock version %d is needed (Linux 6.12), here it is %d", abiScope, abi))
		return found{tier: tier}
	}
	if err := try(abi, 0); err != nil {
		tier.Reasons = append(tier.Reasons, cause(err))
		return found{tier: tier}
	}
	tier.Name, tier.Holds = fmt.Sprintf("landlock-%d+seccomp", abi), true
	tier.Reasons = append(tier.Reasons, "so commands are confined with  network: allow  alone, in their files", "and can write .git and .wf of their workspace, since Landlock cannot close a part of it")
	return found{tier: tier}
}

// try confines a launcher that then ends.
func try(abi int, flags uintptr) error {
	l := launch{Probe: true, ABI: abi, Namespaces: flags != 0, NetNS: flags&unix.CLONE_NEWNET != 0, Dir: "/", Read: []string{"/usr"}, Limits: Limits{}.filled()}
	_, err := l.run(context.Background(), flags, nil, nil)
	return err
}

// AllowNamespaces is what an administrator does so that commands have namespaces here: the setting that is in
// the way or, where none is, the options of a container.
func AllowNamespaces() string {
	return allowNamespaces(func(name string) string {
		b, _ := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/")) // what is not there is not in the way
		return strings.TrimSpace(string(b))
	})
}

func allowNamespaces(sysctl func(name string) string) string {
	for _, s := range []struct{ name, closed, open string }{
		{"user.max_user_namespaces", "0", "15000"},
		{"kernel.unprivileged_userns_clone", "0", "1"},             // Debian before 11
		{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"}, // Ubuntu since 24.04
	} {
		if sysctl(s.name) == s.closed {
			return "sudo sysctl -w " + s.name + "=" + s.open
		}
	}
	return "a container is started with  --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
}

// cause puts the usual reasons in words.
func cause(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "user.max_user_namespaces is reached or 0 (" + err.Error() + ")"
	case errors.Is(err, syscall.EPERM):
		return "the kernel, a container or an AppArmor profile forbids them (" + err.Error() + ")"
	}
	return err.Error()
}
