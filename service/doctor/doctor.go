// Package doctor looks at what wf needs on a machine, and says how to put right what is missing.
//
//	store, configs, keys, walls, caches ─► Examine ─► api.Doctor
//
// # Promised
//
// Nothing is made or changed, but for what clean removes. No program is started and no server is asked.
//
// # Not here
//
// Whether a daemon answers: package daemon asks it.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wf/agentkit/config"
	"wf/agentkit/sandbox"
	"wf/api"
	"wf/protocol"
	"wf/service/compose"
	"wf/store"
)

// Examine looks at everything; served are the workflows that a daemon serves beside those of the project, and more are checkups that others made. clean removes the private directories of
// agents' commands that none has used for 30 days.
func Examine(ctx context.Context, u *compose.Setup, clean bool, served []string, more ...api.Checkup) *api.Doctor {
	at := checkStore(ctx, u)
	out := &api.Doctor{Schema: "wf.doctor/v1", OK: true, Items: []api.Checkup{at}}
	if name, _, err := u.StoreName(); err != nil || !store.IsDatabase(name) || at.State != "bad" { // else each would wait for it in vain
		out.Items = append(out.Items, checkGroups(ctx, u)...)
		out.Items = append(out.Items, checkRuns(ctx, u, time.Now())...)
		out.Items = append(out.Items, checkLife(ctx, u, time.Now())...)
	}
	out.Items = append(out.Items, checkModels(u)...)
	out.Items = append(out.Items, checkSandbox(u))
	out.Items = append(out.Items, checkSinks(ctx, u, served)...)
	out.Items = append(out.Items, checkGit()...)
	out.Items = append(out.Items, checkCargo()...)
	out.Items = append(out.Items, checkPrivate(time.Now(), clean))
	out.Items = append(append(out.Items, checkCopies(time.Now(), clean)...), more...)
	for _, c := range out.Items {
		out.OK = out.OK && c.State != "bad"
	}
	return out
}

// checkStore opens the store, if there is one, and measures it.
func checkStore(ctx context.Context, u *compose.Setup) api.Checkup {
	c := api.Checkup{Name: "store", State: "ok"}
	dir, where, err := u.StoreName()
	if err != nil {
		return bad(c, err)
	}
	if store.IsDatabase(dir) {
		return checkDatabase(ctx, u, c, dir, where)
	}
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() && !compose.HoldsStore(dir) {
		c.Text = fmt.Sprintf("%s (%s): none yet, the first run makes it", dir, where)
		return c
	}
	err = u.WithStore(ctx, func(s store.Store) error {
		size, err := s.Size(ctx)
		c.Text = fmt.Sprintf("%s (%s), %.1f MB", dir, where, float64(size.File+size.Blobs)/1e6)
		return err
	})
	if err != nil {
		return bad(c, err)
	}
	return c
}

// checkDatabase looks at the settings of a database, and at the store in it.
func checkDatabase(ctx context.Context, u *compose.Setup, c api.Checkup, name, where string) api.Checkup {
	r, err := store.Check(ctx, name)
	if err != nil {
		return bad(c, err)
	}
	version, _, _ := strings.Cut(r.Version, " on ")
	c.Text = fmt.Sprintf("%s (%s), %s", store.Shown(name), where, version)
	for _, f := range r.Findings {
		c.Text += "; " + f.String()
		if c.State, c.Fix = "note", "wf store check lists all settings"; f.Fatal {
			return bad(c, protocol.ErrStore.With(c.Fix, "%s", c.Text))
		}
	}
	err = u.WithStore(ctx, func(s store.Store) error {
		size, err := s.Size(ctx)
		c.Text += fmt.Sprintf(", %.1f MB", float64(size.File)/1e6)
		return err
	})
	if err != nil {
		return bad(c, err)
	}
	return c
}

// checkModels reads the configs and looks for the keys.
func checkModels(u *compose.Setup) []api.Checkup {
	loaded, err := u.Config()
	if err != nil {
		return []api.Checkup{bad(api.Checkup{Name: "config"}, err)}
	}
	var files []string
	for _, f := range loaded.Files {
		if !f.Trusted && !f.User {
			f.Path += " (not trusted)"
		}
		files = append(files, f.Path)
	}
	out := []api.Checkup{{Name: "config", State: "ok", Text: cmp.Or(strings.Join(files, ", "), "none; wf needs none")}}
	for _, p := range compose.Providers(loaded) {
		m := api.Checkup{Name: "model " + p.Name + "/…", State: "ok", Text: p.BaseURL}
		switch {
		case p.Blocked != "":
			m.State, m.Text, m.Fix = "note", "not trusted: "+p.Blocked, "wf trust"
		case p.KeyEnv != "" && !p.KeySet:
			m.State, m.Text, m.Fix = "note", "no $"+p.KeyEnv, "export "+p.KeyEnv+"=…, where you want to use it"
		}
		out = append(out, m)
	}
	out = append(out, checkLimits(loaded)...)
	return append(out, checkPrices(loaded, time.Now()))
}

// pricesLife is how long prices are taken for those of today.
const pricesLife = 180 * 24 * time.Hour

// checkPrices tells of what day the prices are, and where they come from.
func checkPrices(loaded *config.Loaded, now time.Time) api.Checkup {
	table := loaded.Table()
	c := api.Checkup{Name: "prices", State: "ok", Text: fmt.Sprintf("of %s, from %s", table.Date, table.Source)}
	if n := loaded.Priced(); n > 0 {
		c.Text += fmt.Sprintf("; %s of the configs before them", protocol.Plural(n, "price"))
	}
	if n := loaded.Unpriced(); n > 0 {
		c.State, c.Fix = "note", "wf trust"
		c.Text += fmt.Sprintf("; %s of %s do not count: it is not trusted", protocol.Plural(n, "price"), loaded.Project.Path)
	}
	if day, err := time.Parse(time.DateOnly, table.Date); err == nil && now.Sub(day) > pricesLife {
		c.State = "note"
		c.Text += fmt.Sprintf(": %d days old, newer models are not among them", int(now.Sub(day).Hours()/24))
		c.Fix = "set the prices of the models that you use under prices: in " + compose.UserConfig() + ", or install a newer wf"
	}
	return c
}

// checkSandbox tells which walls hold around the commands of agents.
func checkSandbox(u *compose.Setup) api.Checkup {
	tier := sandbox.Probe()
	c := api.Checkup{Name: "sandbox", State: "ok", Text: tier.String()}
	loaded, _ := u.Config() // what is wrong with it Confine says
	grants, err := u.Confine()
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
		return bad(c, err)
	case !tier.Holds:
		c.State, c.Fix = "note", "agents' commands ask a person first; a newer kernel (Landlock) confines them"
	case len(tier.Reasons) > 0:
		c.State, c.Fix = "note", "allow user namespaces: "+sandbox.AllowNamespaces()+"; until then roles with confined commands need  network: allow,  or your config  container_is_sandbox: true  in a container"
	}
	if c.State == "note" && u.Inside() {
		c.Text, c.Fix = c.Text+"; your config says that this machine is a sandbox itself: what cannot be confined runs as it is", ""
	}
	return c
}

// checkGit recommends that the user's own git takes no directory of a workspace for a repository because it looks
// like one. git is not started. Where there is none, nothing is said.
func checkGit() []api.Checkup {
	if _, err := exec.LookPath("git"); err != nil || !sandbox.TakesBareRepositories() {
		return nil
	}
	return []api.Checkup{{Name: "git", State: "note", Text: "takes any directory that looks like a bare repository for one, and agents can make such directories",
		Fix: "git config --global safe.bareRepository explicit"}}
}

// checkCargo tells of settings that commands are not given. Where there are none, nothing is said.
func checkCargo() []api.Checkup {
	kept := sandbox.KeptSettings()
	if kept == "" {
		return nil
	}
	return []api.Checkup{{Name: "cargo", State: "note", Text: kept + " is kept from confined commands: a key is in it, or it cannot be read",
		Fix: "move the key to " + filepath.Join(filepath.Dir(kept), "credentials.toml")}}
}

// privateLife is how long a private directory is kept after its last use.
const privateLife = 30 * 24 * time.Hour

// checkPrivate looks at the private directories of agents' commands.
func checkPrivate(now time.Time, clean bool) api.Checkup {
	c := api.Checkup{Name: "caches", State: "ok"}
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

// bad is a checkup that failed.
func bad(c api.Checkup, err error) api.Checkup {
	c.State, c.Text, c.Fix = "bad", err.Error(), protocol.HintOf(err)
	return c
}
