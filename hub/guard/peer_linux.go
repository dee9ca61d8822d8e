package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// admit is nil for a peer of the own user that lives in the same user and pid namespaces as this
// process: a command of an agent that is confined has the user's uid, and namespaces of its own.
//
// The namespaces are read from /proc by the number of the process that connected. Where the kernel
// gives a handle of it (SO_PEERPIDFD, since 6.5) it is looked at again afterwards, so that the number
// was not another process's meanwhile. On older kernels there is that race: a command that connects,
// hands the socket on and ends, while its number is given to a process outside within that time.
func admit(fd int) error {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	switch {
	case err != nil:
		return fmt.Errorf("its user is not known: %w", err)
	case int(c.Uid) != os.Geteuid():
		return fmt.Errorf("it is of user %d, this is user %d", c.Uid, os.Geteuid())
	case c.Pid <= 0:
		return errors.New("it lives in another pid namespace")
	}
	handle, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch {
	case err == nil:
		defer unix.Close(handle)
	case errors.Is(err, unix.ENOPROTOOPT): // of an older kernel
		handle = -1
	default:
		return fmt.Errorf("its process has ended: %w", err)
	}
	if _, err := os.Lstat("/proc/self/ns"); err != nil {
		return fmt.Errorf("its namespaces are not known: %w", err)
	}
	for _, kind := range []string{"user", "pid"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kernel has no such namespaces
		}
		if err != nil {
			return fmt.Errorf("the own %s namespace is not known: %w", kind, err)
		}
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", c.Pid, kind))
		switch {
		case err != nil:
			return fmt.Errorf("its %s namespace is not known: %w", kind, err)
		case theirs != own:
			return fmt.Errorf("process %d lives in another %s namespace", c.Pid, kind)
		}
	}
	if handle >= 0 {
		if err := unix.PidfdSendSignal(handle, 0, nil, 0); err != nil {
			return fmt.Errorf("its process has ended: %w", err)
		}
	}
	return nil
}
