package cas

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// networkFS names file systems on which flock and mmap of several machines do not agree
// (magic numbers: linux/magic.h).
var networkFS = map[uint32]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xff534d42: "cifs",
	0xfe534d42: "smb2",
	0x5346414f: "afs",
	0x6b414653: "afs",
	0x73757245: "coda",
	0x00c36400: "ceph",
	0x01021997: "9p",
	0x0bd00bd0: "lustre",
	0x47504653: "gpfs",
	0x564c:     "ncp",
}

// onNetwork names the network file system that dir lies on, or "".
func onNetwork(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", err
	}
	return networkFS[uint32(st.Type)], nil
}

// flockedBy finds a process that has a file locked, by what the kernel tells (proc(5),
// /proc/locks). false where it does not tell, as of processes outside of a container.
func flockedBy(path string) (pid int, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0, false
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, false
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  READ  4711 08:02:1310 0 EOF
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 && pid != os.Getpid() {
			return pid, true
		}
	}
	return 0, false
}

// stoppedProcess reports whether a process exists but was stopped (SIGSTOP, a debugger).
func stoppedProcess(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(b), ") ") // the name before may hold anything
	return ok && (strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "t"))
}
