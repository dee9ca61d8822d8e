package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	x32Bit    = 0x40000000 // marks calls of the x32 ABI, which has numbers of its own
)

// closedHere are the closed calls that only this processor has.
var closedHere = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_LOOKUP_DCOOKIE}

// modesHere are the calls of modeCalls that only this processor has.
var modesHere = []modeCall{
	{call: unix.SYS_CHMOD, mode: 1}, {call: unix.SYS_CREAT, mode: 1}, {call: unix.SYS_MKDIR, mode: 1}, {call: unix.SYS_MKNOD, mode: 1},
	{call: unix.SYS_OPEN, mode: 2, flags: 1},
}
