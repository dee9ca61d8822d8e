package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

// A program is classic BPF in the making. It has one register and jumps forward only, over
// at most 255 instructions.
type program struct {
	code []unix.SockFilter
	err  error
}

// Instructions.
const (
	opLoad = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opAnd  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	opRet  = unix.BPF_RET | unix.BPF_K
	opEq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opGe   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	opSet  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
)

func (p *program) add(op uint16, k uint32, yes, no int) {
	if yes > 255 || no > 255 {
		p.err = errors.New("the filter of system calls jumps too far")
	}
	p.code = append(p.code, unix.SockFilter{Code: op, Jt: uint8(yes), Jf: uint8(no), K: k})
}

// load reads 32 bits of the call's data.
func (p *program) load(at uint32) { p.add(opLoad, at, 0, 0) }

// ret ends with an action.
func (p *program) ret(action uint32) { p.add(opRet, action, 0, 0) }

// when ends with an action if the register is equal to a value (opEq), not below it (opGe), or has one of its bits (opSet).
func (p *program) when(op uint16, value, action uint32) {
	p.add(op, value, 0, 1)
	p.ret(action)
}

// unless ends with an action if the register has another value.
func (p *program) unless(value, action uint32) {
	p.add(opEq, value, 1, 0)
	p.ret(action)
}

// on runs a part for one system call; its number is in the register. What the part does not
// end is allowed.
func (p *program) on(call uint32, part func(*program)) {
	q := &program{}
	part(q)
	q.ret(unix.SECCOMP_RET_ALLOW)
	p.skipUnless(call, q)
}

// skipUnless appends a part that is run if the register has a value.
func (p *program) skipUnless(value uint32, q *program) {
	p.add(opEq, value, 0, len(q.code))
	p.code = append(p.code, q.code...)
	p.err = errors.Join(p.err, q.err)
}

// socket allows what a rule names and goes on behind otherwise, the register being spent.
func (p *program) socket(r socketRule) {
	var protocols program
	if r.protocols == nil {
		protocols.ret(unix.SECCOMP_RET_ALLOW)
	} else {
		protocols.load(dataArg(2))
		for _, protocol := range r.protocols {
			protocols.when(opEq, protocol, unix.SECCOMP_RET_ALLOW)
		}
	}
	if r.kind == 0 {
		p.load(dataArg(0))
		p.skipUnless(r.family, &protocols)
		return
	}
	var kind program
	kind.load(dataArg(1))
	kind.add(opAnd, typeMask, 0, 0)
	kind.skipUnless(r.kind, &protocols)
	p.load(dataArg(0))
	p.skipUnless(r.family, &kind)
}
