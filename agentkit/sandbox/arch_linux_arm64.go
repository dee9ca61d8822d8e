package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0 // no other ABI shares the numbers
)

// closedHere are the closed calls that only this processor has.
var closedHere = []uintptr{unix.SYS_LOOKUP_DCOOKIE}

// modesHere are the calls of modeCalls that only this processor has: none.
var modesHere []modeCall
