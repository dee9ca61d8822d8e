package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/charmbracelet/x/ansi"
)

// guardScript remembers how the terminal, which is descriptor 3, is set, and says so. When its input ends without a word, the
// process that drew on the terminal was killed: it sets the terminal as it was, and writes what undoes a screen. It is in
// the background then, and must not be stopped for that.
const guardScript = `trap '' HUP INT QUIT TERM TSTP TTIN TTOU
set=$(stty -g <&3) || exit 1
echo ready
exec >/dev/null
read -r word && exit 0
stty "$set" <&3
printf '%s' "$WF_UNDO" >&3`

// undoScreen undoes what a screen sets on a terminal.
const undoScreen = ansi.ResetModeSynchronizedOutput + ansi.ResetModifyOtherKeys + "\x1b[<1u" /* keys as before */ + ansi.ResetModeBracketedPaste + ansi.ResetStyle +
	"\x1b[r" /* all lines scroll */ + ansi.ResetModeAltScreenSaveCursor + ansi.SetModeTextCursorEnable

// guardTerminal has the terminal put back should this process be killed while it draws on it; left ends that.
func guardTerminal() (left func() error, err error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin", "WF_UNDO=" + undoScreen}
	cmd.ExtraFiles = []*os.File{tty}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what is sent to the processes of the terminal is not for it
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	left = func() error {
		_, err := fmt.Fprintln(in, "left")
		return errors.Join(err, in.Close(), cmd.Wait())
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("its settings cannot be read: %w", err), left())
	}
	return left, nil
}
