package sandbox

import (
	"os"
	"syscall"
	"time"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/appear"
)

// A launch is a Policy in the words of the launcher, sent to it over a pipe. Paths are
// absolute, and their links are resolved.
type launch struct {
	Args []string
	Dir  string
	Work string // the workspace, the first of Write
	At   string // where the command finds it; without Namespaces that is Work

	Places []symlink // with Namespaces: where the command finds others of Write

	Env []string

	Read    []string // may be read and executed
	Write   []string // may be written too
	Devices []string // may be read and written, and nothing is made of them
	Tmp     string   // the private directory for temporary files
	// Only with Namespaces:
	Links    []symlink // in the root of the command, beside what it is given
	Merged   int       // the descriptor of the mount that lies over Work, 0 for none
	Overlays []overlay // may be written, and what is written stays in the workspace's own directory
	Protect  []string  // read-only although inside of Write
	Anchors  []string  // directories inside of Write that cannot be moved
	Sockets  []string  // out of reach although inside of Read or Write
	SSHAgent string    // the socket of the user's agent, "" is none

	ABI        int  // of Landlock
	Namespaces bool // the launcher was started in its own
	NetNS      bool // its network namespace too
	Network    bool
	Hosts      []string // endpoints beyond the loopback, for which the launcher lends a listener
	Plain      bool     // without the capabilities of root
	Limits     Limits
	Grace      time.Duration

	Probe bool // put up the walls and end

	control *protection         // what is undone of what the command did to repositories; nil for nothing
	look    func(*launch) error // fills in Env, Read, Links, Protect, Sockets and control, while the launcher starts; nil is done
	met     func(string)
	stdin   *os.File
	view    *workspace.View // in which Work lies, nil for none
	layers  []*os.File      // held as long as the Overlays are mounted

	span     *appear.Span // until what the command left is reported
	leave    func()       // of a command that lasts; nil is nothing
	appeared func(*protocol.Appeared)
}

// errMoved says that the workspace was changed while the walls of a command were put up: nothing was run. It is a number, which a
// launcher reports.
const errMoved = syscall.ESTALE

// A symlink is a link as the machine has it.
type symlink struct{ Path, To string }

// An overlay is a directory that a command reads, and into which it writes without that its files
// change: what is written lies in Upper, which the commands of one workspace share.
type overlay struct {
	At    string   // where the command finds it
	Env   string   // the variable that says so, "" where that is set anyway
	Lower []string // what is read, and is never changed; of what has the same name the first
	Upper string
	Work  string // of the kernel, empty, on the file system of Upper
}

// moved reports whether the command finds the workspace elsewhere.
func (l *launch) moved() bool { return l.At != l.Work }

// place is where the command finds a path.
func (l *launch) place(path string) string {
	if l.moved() && within(path, l.Work) {
		return l.At + path[len(l.Work):]
	}
	for _, p := range l.Places {
		if within(path, p.Path) {
			return p.To + path[len(p.Path):]
		}
	}
	return path
}
