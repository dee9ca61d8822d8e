package sandbox

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// closedCalls are system calls that no build or test needs, and that have led out of
// sandboxes or into the kernel before.
var closedCalls = append([]uintptr{
	// mounts and namespaces
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE,
	// files by other ways than their path, descriptors of others
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_FANOTIFY_INIT,
	// sockets and files without their system calls
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	// the kernel
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL,
}, closedHere...)

// A modeCall takes the mode of a file: as which argument, and behind which flags. Flags at 0 are none,
// since no call has them first.
type modeCall struct {
	call        uintptr
	mode, flags uint32
}

// modeCalls are the calls that could set a file's user or group at execution. Such a file would be that
// of the user for anybody on the machine.
var modeCalls = append([]modeCall{
	{call: unix.SYS_FCHMOD, mode: 1}, {call: unix.SYS_FCHMODAT, mode: 2}, {call: unix.SYS_FCHMODAT2, mode: 2},
	{call: unix.SYS_MKDIRAT, mode: 2}, {call: unix.SYS_MKNODAT, mode: 2}, {call: unix.SYS_OPENAT, mode: 3, flags: 2},
}, modesHere...)

// setsMode denies setuid and setgid bits. A call that opens has a mode only where it creates.
func (p *program) setsMode(c modeCall) {
	p.on(uint32(c.call), func(q *program) {
		if c.flags != 0 {
			q.load(dataArg(c.flags))
			q.add(opSet, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 1, 0)
			q.ret(unix.SECCOMP_RET_ALLOW)
		}
		q.load(dataArg(c.mode))
		q.when(opSet, unix.S_ISUID|unix.S_ISGID, denied)
	})
}

// newNamespaces are the flags of clone(2) that make a namespace.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Fields of struct seccomp_data; arguments are 64 bits wide, their lower halves first.
const (
	dataCall = 0
	dataArch = 4
	dataArgs = 16
)

func dataArg(n uint32) uint32 { return dataArgs + 8*n }

// typeMask leaves the type of a socket, without SOCK_CLOEXEC and SOCK_NONBLOCK.
const typeMask = 0xf

// A socketRule is a kind of socket that may be made, with any of the protocols.
type socketRule struct {
	family    uint32
	kind      uint32   // SOCK_STREAM, …; 0 is any
	protocols []uint32 // nil is any
}

// socketRules are the sockets of a launch. MPTCP, SCTP, UDP-Lite and raw sockets are in none of
// them: Landlock does not see them as TCP.
func (l *launch) socketRules() []socketRule {
	var out []socketRule
	if l.Namespaces || l.ABI >= abiSockets {
		out = append(out, socketRule{family: unix.AF_UNIX})
	}
	if !l.NetNS && !l.Network {
		return out
	}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		// Landlock does not see UDP: it is that of the network, or of a namespace that ends at its loopback.
		out = append(out, socketRule{family, unix.SOCK_STREAM, []uint32{0, unix.IPPROTO_TCP}}, socketRule{family, unix.SOCK_DGRAM, []uint32{0, unix.IPPROTO_UDP}})
	}
	// The addresses of interfaces are asked for by netlink, which changes nothing without
	// capabilities.
	return append(out, socketRule{unix.AF_NETLINK, 0, []uint32{unix.NETLINK_ROUTE}})
}

// filter is the program that the kernel runs at each system call.
func (l *launch) filter() ([]unix.SockFilter, error) {
	if auditArch == 0 {
		return nil, errors.New("there is no filter of system calls for this processor")
	}
	var p program
	p.load(dataArch)
	p.unless(auditArch, unix.SECCOMP_RET_KILL_PROCESS)
	p.load(dataCall)
	if x32Bit != 0 {
		p.when(opGe, x32Bit, denied)
	}
	for _, call := range closedCalls {
		p.when(opEq, uint32(call), denied)
	}
	// The arguments of these lie in memory, where no filter can look: programs fall back to clone and openat.
	p.when(opEq, unix.SYS_CLONE3, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS))
	p.when(opEq, unix.SYS_OPENAT2, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS))
	for _, c := range modeCalls {
		p.setsMode(c)
	}
	p.on(unix.SYS_CLONE, func(q *program) {
		q.load(dataArg(0))
		q.when(opSet, newNamespaces, denied)
	})
	p.on(unix.SYS_IOCTL, func(q *program) {
		// To type into a terminal is to command the shell that reads it.
		q.load(dataArg(1))
		q.when(opEq, unix.TIOCSTI, denied)
		q.when(opEq, unix.TIOCLINUX, denied)
	})
	p.on(unix.SYS_SOCKETPAIR, func(q *program) {
		q.load(dataArg(0))
		q.unless(unix.AF_UNIX, denied)
	})
	p.on(unix.SYS_SOCKET, func(q *program) {
		for _, rule := range l.socketRules() {
			q.socket(rule)
		}
		q.ret(denied)
	})
	p.ret(unix.SECCOMP_RET_ALLOW)
	return p.code, p.err
}

// denied fails a call with EPERM.
const denied = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// install puts the filter on this thread and what it starts, for good.
func install(filter []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}
