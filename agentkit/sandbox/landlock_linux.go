package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock, by what they are for.
const (
	rightsRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsMake  = unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	rightsWrite = rightsRead | rightsMake | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	rightsUse     = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV // of a device
	rightsDevices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK                                     // never given

	// rightsFile are those that mean something for what is no directory.
	rightsFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV |
		unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
)

// devices are what programs open without a second thought, and the rights on them.
var devices = map[string]uint64{
	"/dev/null":    unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE,
	"/dev/zero":    unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE,
	"/dev/full":    unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE,
	"/dev/random":  unix.LANDLOCK_ACCESS_FS_READ_FILE,
	"/dev/urandom": unix.LANDLOCK_ACCESS_FS_READ_FILE,
}

// landlockABI is the version of the kernel's Landlock, 0 for none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// rulesetAttr is struct landlock_ruleset_attr as of version 6; kernels before that take it as
// long as what they do not know is zero.
type rulesetAttr struct{ fs, net, scoped uint64 }

// handled is what a version of Landlock can forbid: everything is forbidden but for the rules.
func handled(abi int, network bool, netNS bool) rulesetAttr {
	attr := rulesetAttr{fs: rightsWrite&^(unix.LANDLOCK_ACCESS_FS_REFER|unix.LANDLOCK_ACCESS_FS_TRUNCATE|unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX) | rightsDevices}
	for _, since := range []struct {
		abi int
		fs  uint64
	}{
		{2, unix.LANDLOCK_ACCESS_FS_REFER}, {abiTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {abiSockets, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
	} {
		if abi >= since.abi {
			attr.fs |= since.fs
		}
	}
	if abi >= 4 && !network && !netNS {
		attr.net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= abiScope {
		attr.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// landlock confines this thread to the files of the launch.
func (l *launch) landlock() error {
	attr := handled(l.ABI, l.Network, l.NetNS)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("create the Landlock ruleset: %w", errno)
	}
	rules := ruleset{int(fd), attr.fs}
	defer unix.Close(rules.fd)
	var err error
	grant := func(rights uint64, paths ...string) {
		for _, path := range paths {
			err = errors.Join(err, rules.allow(path, rights))
		}
	}
	if l.Namespaces {
		grant(rightsRead, "/") // the root of the launch has nothing else
		grant(rightsWrite, shm)
		if l.ownTmp() {
			grant(rightsWrite, tmp)
		}
	} else {
		grant(rightsRead, l.Read...)
	}
	for _, o := range l.Overlays {
		grant(rightsWrite, o.At)
	}
	grant(rightsWrite, l.Write...)
	for path, rights := range devices {
		grant(rights, path)
	}
	grant(rightsUse, l.Devices...)
	if l.SSHAgent != "" {
		grant(unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, agentSocket)
	}
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules.fd), 0, 0); errno != 0 {
		return fmt.Errorf("enforce the Landlock ruleset: %w", errno)
	}
	return nil
}

// pin opens a path in which all links were resolved: one that is there now was put in its way.
func pin(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if !errors.Is(err, unix.ENOSYS) {
		return fd, err
	}
	// Inside of a sandbox there is no openat2: one name after the other.
	if fd, err = unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue
		}
		var stat unix.Stat_t
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if err == nil {
			err = unix.Fstat(next, &stat)
		}
		if err == nil && stat.Mode&unix.S_IFMT == unix.S_IFLNK {
			err = unix.ELOOP
		}
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

type ruleset struct {
	fd      int
	handled uint64
}

// pathBeneath is struct landlock_path_beneath_attr, which the kernel packs to 12 bytes.
type pathBeneath struct {
	rights uint64
	fd     int32
}

// allow grants rights on a path and, if it is a directory, on all that lies in it. A path that
// is not there, or that the user cannot reach anyway, grants nothing.
func (r ruleset) allow(path string, rights uint64) error {
	fd, err := pin(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("grant %s: %w", path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("grant %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsFile
	}
	if rights &= r.handled; rights == 0 {
		return nil // this version of Landlock does not forbid them
	}
	rule := pathBeneath{rights, int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("grant %s: %w", path, errno)
	}
	return nil
}
