package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wf/agentkit/config"
	"wf/agentkit/sandbox"
	"wf/cmd/internal/render"
	"wf/daemon"
	"wf/hub/client"
	"wf/protocol"
	"wf/service/compose"
)

func newDoctor(a *app) *cobra.Command {
	var clean bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at what wf needs here: store, config, models, sandbox",
		Long: `Look at the store, the configs, the keys of the models, the sandbox of agents' commands and the daemon, and tell
what is missing and how to put it right. It ends with 1 where something does not work.

The commands of agents have caches and temporary files of their own, by workspace; --clean removes those that
none has used for 30 days.`,
		Example: `  wf doctor
  wf doctor -o json
  wf doctor --clean`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), clean) },
	}
	cmd.Flags().BoolVar(&clean, "clean", false, "remove the private directories of agents' commands that are unused for 30 days")
	return cmd
}

// checkup is one thing that was looked at.
type checkup struct {
	Name  string `json:"name"`
	State string `json:"state"` // ok; note: it works with less; bad: it does not work
	Text  string `json:"text"`
	Fix   string `json:"fix"`
}

// doctorJSON is wf.doctor/v1.
type doctorJSON struct {
	Schema string    `json:"schema"`
	OK     bool      `json:"ok"`
	Items  []checkup `json:"items"`
}

func (a *app) doctor(ctx context.Context, clean bool) error {
	out := doctorJSON{Schema: "wf.doctor/v1", OK: true, Items: []checkup{a.checkStore(ctx)}}
	out.Items = append(out.Items, a.checkModels()...)
	out.Items = append(out.Items, a.checkSandbox())
	out.Items = append(out.Items, checkGit()...)
	out.Items = append(out.Items, checkPrivate(time.Now(), clean), a.checkDaemon(ctx))
	for _, c := range out.Items {
		out.OK = out.OK && c.State != "bad"
	}
	var err error
	if a.AsJSON() {
		err = a.Answer(out)
	} else {
		err = a.doctorLines(out)
	}
	if err == nil && !out.OK {
		return silent{errDifference}
	}
	return err
}

// checkStore opens the store, if there is one, and measures it.
func (a *app) checkStore(ctx context.Context) checkup {
	c := checkup{Name: "store", State: "ok"}
	dir, where, err := a.StoreDir()
	if err != nil {
		return c.bad(err)
	}
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() && !compose.HoldsStore(dir) {
		c.Text = fmt.Sprintf("%s (%s): none yet, the first run makes it", dir, where)
		return c
	}
	s, err := a.ExistingStore(ctx)
	if err != nil {
		return c.bad(err)
	}
	size, err := s.Size(ctx)
	if err = errors.Join(err, s.Close()); err != nil {
		return c.bad(err)
	}
	c.Text = fmt.Sprintf("%s (%s), %.1f MB", dir, where, float64(size.File+size.Blobs)/1e6)
	return c
}

// checkModels reads the configs and looks for the keys.
func (a *app) checkModels() []checkup {
	c := checkup{Name: "config", State: "ok", Text: "none; wf needs none"}
	loaded, err := a.Config()
	if err != nil {
		return []checkup{c.bad(err)}
	}
	for i, f := range loaded.Files {
		if i == 0 {
			c.Text = ""
		} else {
			c.Text += ", "
		}
		c.Text += f.Path
		if !f.Trusted && !f.User {
			c.Text += " (not trusted)"
		}
	}
	out := []checkup{c}
	for _, p := range providers(loaded) {
		m := checkup{Name: "model " + p.Name + "/…", State: "ok", Text: p.BaseURL}
		switch {
		case p.Blocked != "":
			m.State, m.Text, m.Fix = "note", "not trusted: "+p.Blocked, "wf trust"
		case p.KeyEnv != "" && !p.KeySet:
			m.State, m.Text, m.Fix = "note", "no $"+p.KeyEnv, "export "+p.KeyEnv+"=…, where you want to use it"
		}
		out = append(out, m)
	}
	return append(out, checkPrices(loaded, time.Now()))
}

// pricesLife is how long prices are taken for those of today.
const pricesLife = 180 * 24 * time.Hour

// checkPrices tells of what day the prices are, and where they come from.
func checkPrices(loaded *config.Loaded, now time.Time) checkup {
	table := loaded.Table()
	c := checkup{Name: "prices", State: "ok", Text: fmt.Sprintf("of %s, from %s", table.Date, table.Source)}
	if n := loaded.Priced(); n > 0 {
		c.Text += fmt.Sprintf("; %s of the configs before them", protocol.Plural(n, "price"))
	}
	if n := loaded.Unpriced(); n > 0 {
		c.State, c.Fix = "note", "wf trust"
		c.Text += fmt.Sprintf("; %s of %s do not count: it is not trusted", protocol.Plural(n, "price"), render.Visible(loaded.Project.Path))
	}
	if day, err := time.Parse(time.DateOnly, table.Date); err == nil && now.Sub(day) > pricesLife {
		c.State = "note"
		c.Text += fmt.Sprintf(": %d days old, newer models are not among them", int(now.Sub(day).Hours()/24))
		c.Fix = "set the prices of the models that you use under prices: in " + compose.UserConfig() + ", or install a newer wf"
	}
	return c
}

// checkSandbox tells which walls hold around the commands of agents.
func (a *app) checkSandbox() checkup {
	tier := sandbox.Probe()
	c := checkup{Name: "sandbox", State: "ok", Text: tier.String()}
	loaded, _ := a.Config() // what is wrong with it Confine says
	grants, err := a.Confine()
	if given := slices.Concat(grants.Read, grants.Devices); len(given) > 0 {
		c.Text += "; the config lets commands read " + strings.Join(given, ", ")
	}
	if _, running := os.LookupEnv("SSH_AUTH_SOCK"); grants.SSHAgent && running {
		c.Text += "; the config lets commands use the keys of your ssh-agent"
	} else if grants.SSHAgent {
		c.Text += "; the config lets commands use your ssh-agent, but none runs here: SSH_AUTH_SOCK is not set"
	}
	if tier.Holds {
		c.Text += "; " + grants.Limits.Bounds()
	}
	switch {
	case errors.Is(err, config.ErrConfig) && loaded != nil:
		return c.bad(err)
	case !tier.Holds:
		c.State, c.Fix = "note", "agents' commands ask a person first; a newer kernel (Landlock) confines them"
	case len(tier.Reasons) > 0:
		c.State, c.Fix = "note", "allow user namespaces: "+sandbox.AllowNamespaces()+"; until then roles with confined commands need  network: allow,  or your config  container_is_sandbox: true  in a container"
	}
	if c.State == "note" && a.Inside() {
		c.Text, c.Fix = c.Text+"; your config says that this machine is a sandbox itself: what cannot be confined runs as it is", ""
	}
	return c
}

// checkGit recommends that the user's own git takes no directory of a workspace for a repository because it looks
// like one. git is not started. Where there is none, nothing is said.
func checkGit() []checkup {
	if _, err := exec.LookPath("git"); err != nil || !sandbox.TakesBareRepositories() {
		return nil
	}
	return []checkup{{Name: "git", State: "note", Text: "takes any directory that looks like a bare repository for one, and agents can make such directories",
		Fix: "git config --global safe.bareRepository explicit"}}
}

// checkDaemon asks the daemon of the store, if there is one.
func (a *app) checkDaemon(ctx context.Context) checkup {
	c := checkup{Name: "daemon", State: "ok", Text: "none; wf serve starts one"}
	dir, _, err := a.StoreDir()
	if err != nil {
		return c // told with the store
	}
	server, socket, err := daemon.Dial(dir)
	if err != nil {
		return c // told with the store
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	switch info, err := server.Info(ctx); {
	case errors.Is(err, client.ErrUnreachable):
	case err != nil:
		return c.bad(err)
	default:
		c.Text = fmt.Sprintf("%s (version %s) listens on %s", info.Name, info.Version, socket)
	}
	return c
}

// privateLife is how long a private directory is kept after its last use.
const privateLife = 30 * 24 * time.Hour

// checkPrivate looks at the private directories of agents' commands.
func checkPrivate(now time.Time, clean bool) checkup {
	c := checkup{Name: "caches", State: "ok"}
	all, old, size, err := sandbox.Sweep(now.Add(-privateLife), clean)
	if err != nil {
		c.Fix = "remove what is named by hand"
		c.State, c.Text = "note", err.Error()
		return c
	}
	c.Text = fmt.Sprintf("agents' commands have used %s", protocol.Plural(all, "workspace"))
	switch {
	case clean && old > 0:
		c.Text += fmt.Sprintf("; removed what %d left, unused for 30 days: %.1f MB", old, float64(size)/1e6)
	case old > 0:
		c.Text += fmt.Sprintf("; %d unused for 30 days: %.1f MB", old, float64(size)/1e6)
		c.Fix = "wf doctor --clean"
	}
	return c
}

func (c checkup) bad(err error) checkup {
	c.State, c.Text, c.Fix = "bad", err.Error(), protocol.HintOf(err)
	return c
}

func (a *app) doctorLines(d doctorJSON) error {
	p := a.Out.Paint()
	for _, c := range d.Items {
		mark := map[string]string{"ok": p.Green("✓"), "note": p.Yellow("!"), "bad": p.Red("✗")}[c.State]
		fmt.Fprintf(a.Out, "%s %s  %s\n", mark, p.Bold(c.Name), render.Visible(c.Text))
		if c.Fix != "" {
			fmt.Fprintf(a.Out, "    %s %s\n", p.Dim("fix"), render.Visible(c.Fix))
		}
	}
	return nil
}
