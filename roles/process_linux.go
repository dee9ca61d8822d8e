package roles

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// DieWithParent ends a command when the thread that started it ends: after a kill -9 of wf the
// old command must not work beside the one that wf resume starts. What it has started by then may go on.
func DieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// groupLives reports whether a process of the group still works. What has ended and was not
// waited for stays in its group, in a container without an init for ever; it does not count.
func groupLives(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return true // unknown
	}
	for _, d := range dirs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		// pid (name) state parent group …; the name may hold anything (proc_pid_stat(5)).
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 3 || string(f[2]) != strconv.Itoa(group) {
			continue
		}
		if state := f[0][0]; state != 'Z' && state != 'X' {
			return true
		}
	}
	return false
}
