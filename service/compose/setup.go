package compose

import (
	"fmt"
	"io"
	"sync"

	"wf/agentkit"
	"wf/agentkit/config"
	"wf/agentkit/mcp"
)

// Options of a Setup; the zero value is right.
type Options struct {
	Store   string    // directory of the store; "" is WF_STORE, the nearest .wf upwards, else the user's own
	Version string    // of the program, kept with runs
	Stdin   io.Reader // what the file "-" reads
	Servers []string  // MCP servers that a workflow declares and that may start, by name; "*" is all
	Trusted []string  // CIDs that are trusted by this process alone
	// Ours says that wf itself wrote all that runs: commands need no walls.
	Ours    bool
	Verbose bool // tell more
	// Tell writes a line for the user: what went wrong without harm ("warning: …"), or what was
	// done. nil tells nothing.
	Tell func(text string)
}

// A Setup joins the parts of wf for one process: the configs, the models that were opened, the
// memories, and what is trusted. Options are set before its first use; then it is safe for
// concurrent use.
type Setup struct {
	Options

	loaded struct { // the configs, read once, also where a daemon serves several at a time
		once   sync.Once
		config *config.Loaded
		err    error
	}
	key struct { // see Seal
		once  sync.Once
		bytes []byte
	}

	opened   openModels
	offers   mcp.Offers
	withheld agentkit.Withheld

	memories openMemories
	pinned   sync.Map // *cas.Pins by *cas.Store
	pages    taskPages
	seeding  seeding
}

// Settle returns when the pages of tasks are written that were completed until now.
func (u *Setup) Settle() { u.pages.work.Wait() }

// Close stops what goes on in the background.
func (u *Setup) Close() { u.seeding.end() }

func (u *Setup) tellf(format string, args ...any) {
	if u.Tell != nil {
		u.Tell(fmt.Sprintf(format, args...))
	}
}

func (u *Setup) warnf(format string, args ...any) { u.tellf("warning: "+format, args...) }

// Warn tells the user what went wrong without harm.
func (u *Setup) Warn(err error) { u.warnf("%v", err) }
