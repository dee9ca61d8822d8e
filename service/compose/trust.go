package compose

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/api"
	"wf/engine/lang"
	"wf/protocol"
)

// Asked is what a person is asked to trust, all at once.
type Asked []asked

type asked struct {
	config.Grant
	acts []string // what it does
}

// addWants adds those that are not trusted yet.
func (x *Asked) addWants(wants []config.Want) {
	for _, w := range wants {
		if !w.Trusted {
			*x = append(*x, asked{w.Grant, append([]string{"it may then " + w.Does}, strings.Split(strings.TrimSpace(w.Text), "\n")...)})
		}
	}
}

// Questions are what a person is shown first: each thing with what it does, or how it differs from what is trusted.
func (u *Setup) Questions(x Asked) (out []api.TrustQuestion, err error) {
	g, err := u.Grants()
	if err != nil {
		return nil, err
	}
	shown := map[protocol.Link]map[string]bool{} // lines and changes, each once
	for _, a := range x {
		q := api.TrustQuestion{CID: a.CID.Short(), Name: a.Name, File: a.File, Does: powerText[a.Power]}
		seen := shown[a.CID]
		if seen == nil {
			seen = map[string]bool{}
			shown[a.CID] = seen
		}
		if q.Change, err = g.Change(a.Grant); err != nil {
			return nil, err
		}
		q.Acts = slices.DeleteFunc(slices.Clone(a.acts), func(line string) bool { return q.Change != "" || seen[line] })
		if seen[q.Change] {
			q.Change = ""
		}
		for _, line := range append(q.Acts, q.Change) {
			seen[line] = true
		}
		out = append(out, q)
	}
	return out, nil
}

// Trust gives all that was asked for.
func (u *Setup) Trust(x Asked) error {
	g, err := u.Grants()
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range x {
		errs = append(errs, g.Add(a.Grant))
	}
	return errors.Join(errs...)
}

// powerText says what a power lets happen.
var powerText = map[config.Power]string{
	config.Serve:      "wf serve starts it when a client asks",
	config.Schedule:   "wf serve starts it by the clock",
	config.Webhook:    "wf serve starts it when another service sends a signed event",
	config.Remember:   "its agents change your memory, which other workflows begin with, unasked",
	config.Notify:     "notifications about runs go where it says",
	config.Unconfined: "runs, as you, whatever its agents write (sandbox: off)",

	config.StartServer:   "a server of tools",
	config.SetPrices:     "what models cost",
	config.SendPrompts:   "a provider of models",
	config.ChooseDefault: "where prompts go",
	config.OfferModels:   "models that clients of a daemon may choose",
	config.OpenWalls:     "the walls of agents' commands",
}

// AskUnconfined is what must be trusted before a definition runs without walls.
func (u *Setup) AskUnconfined(p *lang.Program, d Definition) (x Asked, err error) {
	if !unconfined(p) {
		return x, nil
	}
	file, err := filepath.Abs(d.Path)
	if err != nil {
		return x, err
	}
	wanted, err := u.Wanted(p, Origin{File: file, Source: d.Source})
	for _, grant := range wanted {
		if grant.Power == config.Unconfined {
			x = append(x, asked{grant, Acts(p)})
		}
	}
	return x, err
}

// AskMixed is what must be trusted before mixtures of definitions run, where one of them runs without walls: then all of
// them, since a mixture takes commands of one into the walls of another. open reports whether one of them has no walls.
func (u *Setup) AskMixed(all []Definition) (x Asked, open bool, err error) {
	if !slices.ContainsFunc(all, func(d Definition) bool { return unconfined(d.Program) }) {
		return nil, false, nil
	}
	g, err := u.Grants()
	if err != nil {
		return nil, true, err
	}
	for _, d := range all {
		file, err := filepath.Abs(d.Path)
		if err != nil {
			return nil, true, err
		}
		grant, err := grantOf(d.Program, Origin{File: file, Source: d.Source})
		if err != nil {
			return nil, true, err
		}
		grant.Power = config.Unconfined
		has, err := g.Holds(grant, "")
		if err != nil {
			return nil, true, err
		}
		if !has {
			x = append(x, asked{grant, Acts(d.Program)})
		}
	}
	return x, true, nil
}

// MissingMixed is the error of a bisect that no person can be asked to trust.
func (x Asked) MissingMixed() error {
	if len(x) == 0 {
		return nil
	}
	var flags []string
	for _, a := range x {
		flags = append(flags, "--trust "+a.CID.String())
	}
	return protocol.ErrUntrusted.With(strings.Join(flags, " ")+" where no person can be asked",
		"one of the versions says \"sandbox: off\", and a mixture can take commands of any other version out of the sandbox: all of them have to be trusted")
}

// ConfigTrust is what the configs of this place want to do.
type ConfigTrust struct {
	File   string   // of the project, else the first that wants something
	Powers []string // what is wanted, trusted or not
	Asked  Asked    // what is not trusted yet
}

// ConfigTrust reads it. Where no config wants anything and the project has none it is an error.
func (u *Setup) ConfigTrust() (t ConfigTrust, err error) {
	c, err := u.Config()
	if err != nil {
		return t, err
	}
	wants, err := c.Wants()
	if err != nil {
		return t, err
	}
	if c.Project == nil && len(wants) == 0 {
		return t, config.ErrConfig.With("put one at .wf/config.yaml; your own needs no trust. wf trust FILE is for workflows", "there is no project config here")
	}
	if c.Project != nil {
		t.File = c.Project.Path
	}
	t.Powers = []string{}
	for _, w := range wants {
		t.Powers = append(t.Powers, w.Does)
		if t.File == "" {
			t.File = w.File
		}
	}
	t.Asked.addWants(wants)
	return t, nil
}

// DistrustConfig takes the trust in all that the configs want back.
func (u *Setup) DistrustConfig() error {
	c, err := u.Config()
	if err != nil {
		return err
	}
	return c.Distrust()
}

// Weighed is a workflow with what it waits for.
type Weighed struct {
	file    string // as given
	program *lang.Program
	powers  []config.Want // of the definition
	servers []config.Want // that it declares
}

// Weigh finds what a definition waits for; p is its program.
func (u *Setup) Weigh(d Definition, p *lang.Program) (w Weighed, err error) {
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return w, err
	}
	w = Weighed{file: d.Path, program: p}
	if w.powers, err = u.wants(p, Origin{File: path, Source: d.Source}); err != nil {
		return w, err
	}
	w.servers, err = u.WantedServers(p, path)
	return w, err
}

// Ask is what must be trusted before the workflows have all powers that they need.
func Ask(all []Weighed) (x Asked) {
	for _, w := range all {
		for _, p := range w.powers {
			if !p.Trusted {
				x = append(x, asked{p.Grant, actsBy(p.Power, w.program)})
			}
		}
		x.addWants(w.servers)
	}
	return x
}

// Listed lists the powers that workflows need, trusted or not; with rest also all else that is trusted or waits for
// that.
func (u *Setup) Listed(all []Weighed, rest bool) ([]api.Trusted, error) {
	l := trustList{[]api.Trusted{}, map[string]bool{}}
	for _, w := range all {
		for _, x := range w.powers {
			x.File = w.file
			l.add(x.Grant, x.Trusted)
		}
		for _, x := range w.servers {
			l.add(x.Grant, x.Trusted)
		}
	}
	if !rest {
		return l.rows, nil
	}
	loaded, err := u.Config()
	if err != nil {
		return nil, err
	}
	wants, err := loaded.Wants()
	if err != nil {
		return nil, err
	}
	for _, w := range wants {
		l.add(w.Grant, w.Trusted)
	}
	g, err := u.Grants()
	if err != nil {
		return nil, err
	}
	kept, err := g.List()
	for _, x := range kept {
		l.add(x, true)
	}
	return l.rows, err
}

// ServedHere are the files of the valid workflows that a daemon would serve here.
func (u *Setup) ServedHere() (out []string, err error) {
	store, _, err := u.StoreName()
	if err != nil {
		return nil, err
	}
	c, err := u.NewCatalog(nil, store)
	if err != nil {
		return nil, err
	}
	served, err := c.List()
	for _, f := range served {
		if f.Program != nil {
			out = append(out, f.Path)
		}
	}
	return out, err
}

// A trustList has each power of each thing once.
type trustList struct {
	rows []api.Trusted
	seen map[string]bool
}

func (l *trustList) add(x config.Grant, trusted bool) {
	row := api.Trusted{Power: string(x.Power), CID: x.CID.String(), Name: x.Name, File: x.File, Trusted: trusted}
	key := row.Power + " " + row.CID + " " + x.Dir
	if !l.seen[key] {
		l.seen[key] = true
		l.rows = append(l.rows, row)
	}
}

// Distrust takes the trust in a workflow back, with the servers that it declares.
func (u *Setup) Distrust(w Weighed) error {
	loaded, err := u.Config()
	if err != nil {
		return err
	}
	def, err := w.program.Block()
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, loaded.Revoke(s))
	}
	g, err := u.Grants()
	if err != nil {
		return err
	}
	for _, x := range w.powers {
		errs = append(errs, g.Withdraw(x.Grant))
	}
	return errors.Join(append(errs, u.DistrustCID(def.Link))...)
}

// DistrustCID takes all powers back that what has a CID was given.
func (u *Setup) DistrustCID(cid protocol.Link) error {
	g, err := u.Grants()
	if err != nil {
		return err
	}
	var errs []error
	for _, power := range config.Powers {
		errs = append(errs, g.Remove(power, cid))
	}
	return errors.Join(errs...)
}
