package compose

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"wf/agentkit"
	"wf/agentkit/config"
	"wf/agentkit/mcp"
	"wf/agentkit/prompt"
	"wf/agentkit/sandbox"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
	"wf/store"
)

// Options of a Setup; the zero value is right.
type Options struct {
	Store   string    // directory of the store; "" is WF_STORE, the nearest .wf upwards, else the user's own
	Version string    // of the program, kept with runs
	Stdin   io.Reader // what the file "-" reads
	Servers []string  // MCP servers that a workflow declares and that may start, by name; "*" is all
	Trusted []string  // CIDs that are trusted by this process alone
	Has     []string  // what this process has that roles may need: see protocol.ParseHas
	// Patience goes before that of roles and providers; see agentkit.Agent. nil is theirs.
	Patience *time.Duration
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
		err   error // that it cannot be kept
	}

	opened   openModels
	offers   mcp.Offers
	strange  sync.Map // servers of tools of which the user was told that they say what is no message, by name
	withheld agentkit.Withheld

	memories openMemories
	pinned   sync.Map // *cas.Pins by store.Store
	pages    taskPages
	library  seeding // all of Go's standard library
	tests    seeding // what each test needs of it
}

// Settle returns when the pages of tasks are written that were completed until now.
func (u *Setup) Settle() { u.pages.work.Wait() }

// Close stops what goes on in the background.
func (u *Setup) Close() {
	u.tests.end()
	u.library.end()
}

// Tellf writes a line for the user, see Options.Tell.
func (u *Setup) Tellf(format string, args ...any) {
	if u.Tell != nil {
		u.Tell(fmt.Sprintf(format, args...))
	}
}

func (u *Setup) warnf(format string, args ...any) { u.Tellf("warning: "+format, args...) }

// Warn tells the user what went wrong without harm.
func (u *Setup) Warn(err error) { u.warnf("%v", err) }

// newEngine joins the engine with what performs the steps. watch may be nil.
func (u *Setup) Engine(s store.Store, watch func(api.Update)) *engine.Engine {
	agent := agentkit.Agent{Models: u.OpenModel, Default: u.defaultModels, Window: u.Window, Patience: u.patience, Patient: u.Options.Patience, MCP: u.servers, Offers: &u.offers, Strange: u.strangeServer, Withheld: &u.withheld, Seal: u.sealFor("calls"), Confine: u.Confine, Inside: u.Inside, Trusted: u.trustsServer, Allowed: u.allowsServer, Memory: u.AgentMemory(s)}
	e := &engine.Engine{
		Store:   s,
		Version: u.Version,
		Watch:   u.keepTasks(s, watch),
		Price:   u.price,
		Warn:    u.Warn,
		Over:    u.forget,
		Admit:   func(c engine.Candidate) error { return u.admitTo(s, c) },
		Pins:    u.Pins(s),
		Seen:    u.SeenFiles(),

		Has:        u.Has,
		ConfineAll: u.confinesAll(),
		Copies:     CopiesOf(s.Dir()),

		Performers: map[protocol.Action]roles.Performer{
			protocol.ActPrompt: agent,
			protocol.ActRun:    &roles.Run{Messages: prompt.Within, Walls: walls{u}, System: sandbox.Allowed},
			protocol.ActAsk:    roles.Ask{},
			protocol.ActWait:   roles.Wait{},
			protocol.ActSet:    roles.Set{},
		},
	}
	if store.IsDatabase(s.Name()) {
		e.Machine = u.machine()
	}
	e.Performers[protocol.ActWorkflow] = agentkit.Template{Agent: agent, Child: e.SubWorkflow()}
	return e
}

// machine names this user's files on this machine among all machines that work on a store: two have the same name only where
// they share the directory of the user's state, and so his files.
func (u *Setup) machine() string { return hex.EncodeToString(u.sealFor("machine")[:6]) }

// User is who starts, answers and cancels: the name of the user.
func User() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// Copies is the directory of the copies of workspaces that visits have for themselves, of all stores of the user; "" where the
// user has no directory for state.
func Copies() string {
	state := cas.StateDir(os.Getenv)
	if state == "" {
		return ""
	}
	return filepath.Join(state, "copies")
}

// CopiesOf are those of one store.
func CopiesOf(store string) string {
	all := Copies()
	if all == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(store))
	return filepath.Join(all, hex.EncodeToString(sum[:8]))
}

// Note keeps the heads of runs that this command moved outside of the store, so that a store
// put back to an older copy is found out. Runs that came from elsewhere stay so. Where that cannot be done the run is none the worse:
// the user is told, and wf verify lists it as not proven.
func (u *Setup) Note(ctx context.Context, s store.Store, runs ...protocol.RunID) {
	if err := u.Pins(s).Note(ctx, runs...); err != nil {
		u.warnf("the newest heads were not noted outside of the store: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// Pins tell the runs of this user in a store from those that came from elsewhere.
func (u *Setup) Pins(s store.Store) *cas.Pins {
	p, _ := u.pinned.LoadOrStore(s, cas.NewPins(s, cas.StateDir(os.Getenv)))
	return p.(*cas.Pins)
}
