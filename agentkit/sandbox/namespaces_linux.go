package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// namespaces furnishes the launcher's own: a root directory of its own, a loopback.
func (l *launch) namespaces() error {
	if l.NetNS {
		if err := loopback(); err != nil {
			return fmt.Errorf("bring up the loopback: %w", err)
		}
		if len(l.Hosts) > 0 {
			if err := lend(fdLender); err != nil {
				return fmt.Errorf("listen for the proxy: %w", err)
			}
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := l.merge(); err != nil {
		return fmt.Errorf("attach the layers of the workspace: %w", err)
	}
	if err := l.enterRoot(); err != nil {
		return err
	}
	l.settle()
	return nil
}

// loopback brings up the only interface of a new network namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifreq, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifreq); err != nil {
		return err
	}
	ifreq.SetUint16(ifreq.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifreq)
}
