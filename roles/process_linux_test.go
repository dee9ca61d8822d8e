package roles

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Who ended and was not waited for does not keep its group alive: nobody may ever wait for it.
func TestAGroupOfTheEndedDoesNotLive(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read line")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := cmd.Process.Pid
	if !groupLives(group) {
		t.Error("a group that works is taken for one that has ended")
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); groupLives(group); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the group lives on")
		}
	}
	if syscall.Kill(-group, 0) != nil {
		t.Error("it was waited for, so nothing was tested")
	}
	_ = cmd.Wait() // exit status 1: the line was empty
	if groupLives(group) {
		t.Error("a group that is gone is taken for one that works")
	}
}
