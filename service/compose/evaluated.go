package compose

import (
	"os"
	"path/filepath"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/config"
	"wf/agentkit/tape"
	"wf/cas"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
)

// Lend has agents that open a model by this name be given m, until it is given back.
func (u *Setup) Lend(name string, m llms.Model) (giveBack func()) {
	u.opened.mu.Lock()
	defer u.opened.mu.Unlock()
	if u.opened.lent == nil {
		u.opened.lent = map[string]llms.Model{}
	}
	u.opened.lent[name] = m
	return func() {
		u.opened.mu.Lock()
		defer u.opened.mu.Unlock()
		delete(u.opened.lent, name)
	}
}

// Tap has every model that is opened from here on recorded by the recorder of the context that it is called with
// (tape.Recording).
func (u *Setup) Tap() {
	u.opened.mu.Lock()
	defer u.opened.mu.Unlock()
	u.opened.tapped = true
}

// Purse is what is known of the models of a workflow before it runs.
type Purse struct {
	Live     bool     // a model answers, not a script or a tape
	Unpriced []string // models without a price, in the order of their roles
	Dearest  int64    // what a token costs at most, in micro-dollars for a million; of the models with a price
}

// PurseOf looks at the models of all agents of a workflow, by role, "" for every one, as a run would have them.
func (u *Setup) PurseOf(p *lang.Program, models map[string][]string) (x Purse, err error) {
	loaded, err := u.Config()
	if err != nil {
		return x, err
	}
	table := loaded.Table()
	seen := map[string]bool{}
	for role := range parts(p) {
		if role.Action != protocol.ActPrompt {
			continue
		}
		flag := models[""]
		if own := models[role.Name]; role.path == "" && len(own) > 0 {
			flag = own
		}
		r, err := loaded.Resolve(role.Name, flag, role.Model, os.LookupEnv)
		if err != nil {
			continue // told where the run begins
		}
		for _, m := range r.Models {
			if seen[m] {
				continue
			}
			seen[m] = true
			price, ok := table.Of(m)
			if !Scripted(m) {
				x.Live = true
				if !ok {
					x.Unpriced = append(x.Unpriced, m)
				}
			}
			if !ok {
				continue
			}
			x.Dearest = max(x.Dearest, price.Input, price.Output)
			for _, more := range []*int64{price.Cached, price.Write5m, price.Write1h} {
				if more != nil {
					x.Dearest = max(x.Dearest, *more)
				}
			}
		}
	}
	return x, nil
}

// TapeName is the model that answers from a tape at an absolute path.
func TapeName(path string) string { return tape.Prefix + filepath.ToSlash(path) }

// AskSuite is what must be trusted before the checks of a suite run without walls: its text.
func (u *Setup) AskSuite(file string, source []byte) (x Asked, err error) {
	link, _ := cas.Payload(source)
	g, err := u.Grants()
	if err != nil {
		return nil, err
	}
	has, err := g.Has(config.Unconfined, link)
	if err != nil || has {
		return nil, err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	return Asked{asked{config.Grant{Power: config.Unconfined, CID: link, Name: filepath.Base(file), File: path, Text: string(source)},
		[]string{"its checks then run as you, on what the runs of the workflow wrote"}}}, nil
}

// MissingSuite is the error of an evaluation that no person can be asked to trust.
func (x Asked) MissingSuite() error {
	if len(x) == 0 {
		return nil
	}
	return protocol.ErrUntrusted.With("--trust "+x[0].CID.String()+" where no person can be asked, or leave --check-sandbox out: the checks are then confined",
		"the checks of %s would run as you, and its text is not trusted", x[0].File)
}

// ReadBeside reads a definition that a file in dir names, such as a suite. Links may not lead out of dir. Of one that lies
// outside of it, and is no valid workflow, nothing is shown.
func (u *Setup) ReadBeside(dir, name string) (d Definition, err error) {
	local := filepath.IsLocal(filepath.FromSlash(name))
	d.Path = filepath.FromSlash(name)
	if !filepath.IsAbs(d.Path) {
		d.Path = filepath.Join(dir, d.Path)
	}
	if local {
		d.Source, err = files.ReadIn(dir, filepath.FromSlash(name), protocol.WorkflowMax)
	} else {
		d.Source, err = files.Read(d.Path, protocol.WorkflowMax)
	}
	if err != nil {
		return d, cannotRead(name, err)
	}
	u.Load(&d, d.Path)
	if d.Program == nil && !local {
		return d, protocol.ErrInvalid.With("wf validate "+protocol.ShellWord(d.Path)+" tells what is wrong", "%s is not a valid workflow", name)
	}
	return d, nil
}
