package sandbox

import "golang.org/x/sys/unix"

// kept are the capabilities of a command that runs as root: to work on files of a workspace
// that belong to others, as in containers. Landlock holds for root, too.
const kept = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID

// dropCapabilities leaves those of this thread that are in kept, and none to anybody but root, nor to a plain one.
// With no_new_privs no program brings them back.
func dropCapabilities(plain bool) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	keep := uint32(0)
	if unix.Geteuid() == 0 && !plain {
		keep = kept
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	if data[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			if c < 32 && keep&(1<<c) != 0 {
				continue
			}
			// EINVAL: a capability that the kernel does not know yet
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL {
				return err
			}
		}
	}
	data = [2]unix.CapUserData{{Effective: data[0].Permitted & keep, Permitted: data[0].Permitted & keep}}
	return unix.Capset(&header, &data[0])
}
