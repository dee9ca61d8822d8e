package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// program is a server process with a directory of its own, which goes away with it. It never runs as root: PostgreSQL and
// PgBouncer refuse to.
type program struct {
	dir  string
	user *syscall.SysProcAttr // nil: that of this process
	cmd  *exec.Cmd
	over chan struct{} // closed when the process has ended

	unmount func() error // of the file system on the directory; nil without one
}

// nobody owns the directory where this process is root.
const nobody = 65534

// newProgram makes the directory of a program, in that of temporary files where the program can get there.
func newProgram(name string) (p program, err error) {
	in, root := "", os.Geteuid() == 0
	if root && !searchable(os.TempDir()) {
		in = "/var/tmp"
	}
	if p.dir, err = os.MkdirTemp(in, name); err != nil || !root {
		return p, err
	}
	p.user = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := os.Chown(p.dir, nobody, nobody); err != nil {
		return p, errors.Join(err, os.RemoveAll(p.dir))
	}
	return p, nil
}

// searchable reports whether every user gets into a directory.
func searchable(dir string) bool {
	for {
		i, err := os.Stat(dir)
		if err != nil || i.Mode()&1 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

// command is a program of the system, as the user of this one.
func (p *program) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr, cmd.Dir = p.user, p.dir
	cmd.Env = []string{"PATH=" + filepath.Dir(path) + ":/usr/bin:/bin", "LC_ALL=C"}
	return cmd
}

// perform runs a command to its end.
func (p *program) perform(path string, args ...string) error {
	if out, err := p.command(path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(path), err, out)
	}
	return nil
}

// start starts the process. What it says goes to its log.
func (p *program) start(path string, args ...string) error {
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has a descriptor of its own
	p.cmd, p.over = p.command(path, args...), make(chan struct{})
	p.cmd.Stderr, p.cmd.Stdout = log, log
	if err := p.cmd.Start(); err != nil {
		p.over = nil
		return err
	}
	go func(cmd *exec.Cmd, over chan struct{}) {
		_ = cmd.Wait() // how it ended is told by its log
		close(over)
	}(p.cmd, p.over)
	return nil
}

// said is what the process has said.
func (p *program) said() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// patience is how long a program may take for anything.
const patience = time.Minute

// until asks again and again until an answer is yes. ended is that the process has ended instead.
func (p *program) until(yes func() error) (ended bool, err error) {
	tick, late := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		if err = yes(); err == nil {
			return false, nil
		}
		select {
		case <-p.over:
			return true, err
		case <-late:
			return false, err
		case <-tick.C:
		}
	}
}

// Kill ends all processes of the program at once, by SIGKILL.
func (p *program) Kill() error {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children") // elsewhere they end by themselves, soon after
	err := p.cmd.Process.Kill()
	for _, child := range strings.Fields(string(children)) {
		if n, bad := strconv.Atoi(child); bad == nil {
			_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended
		}
	}
	<-p.over
	return err
}

// Wait returns when the process has ended.
func (p *program) Wait() { <-p.over }

// stop ends the process by a signal, and removes the directory.
func (p *program) stop(by os.Signal) error {
	if p.over != nil {
		_ = p.cmd.Process.Signal(by) // it may have ended
		select {
		case <-p.over:
		case <-time.After(patience):
			_ = p.Kill()
		}
	}
	if p.unmount != nil {
		if err := p.unmount(); err != nil {
			return err
		}
	}
	return os.RemoveAll(p.dir)
}
