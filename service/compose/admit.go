package compose

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/agentkit/model"
	"wf/agentkit/sandbox"
	"wf/agentkit/script"
	"wf/agentkit/tape"
	"wf/engine"
	"wf/protocol"
)

// admit refuses a run that cannot be what it promises, before anything is written: one whose
// limit of cost cannot hold and, before its first step, one with agents that no model can be
// reached for.
func (u *Setup) admit(c engine.Candidate) error {
	loaded, err := u.Config()
	if err != nil {
		return err
	}
	if !u.Inside() {
		if err := unconfinable(sandbox.Probe, loaded, c); err != nil {
			return err
		}
		if err := unconfinableServers(sandbox.Probe, loaded, c); err != nil {
			return err
		}
	}
	if (c.New || c.Fork) && unconfined(c.Program) {
		wanted, err := u.Wanted(c.Program, Origin{File: c.File, Workspace: c.Workspace})
		if err == nil {
			err = Untrusted(wanted, config.Unconfined)
		}
		if err != nil {
			return err
		}
	}
	price := u.unbounded(loaded, c)
	if !c.New {
		if price == nil {
			u.seedOnline(loaded, c)
		}
		return price
	}
	keys := unreachable(loaded, c)
	if keys == nil && price == nil {
		u.seedOnline(loaded, c)
	}
	if keys != nil && price != nil {
		return protocol.ErrModel.With(protocol.HintOf(price), "%v\n%v", keys, price)
	}
	return errors.Join(keys, price)
}

// agents calls f for every agent of a run and of its sub-workflows, with a name that tells it
// apart and the models that it tries.
func agents(loaded *config.Loaded, c engine.Candidate, f func(w *protocol.Workflow, role string, models []string)) {
	called := map[string][]string{} // the models that the callers of a sub-workflow give it, by its path
	for x := range parts(c.Program) {
		models := called[x.path]
		switch {
		case x.path == "":
			models = c.ModelsOf(x.Role)
		case len(models) == 0:
			models = x.Model
		}
		called[x.path+x.Name+"/"] = models
		if x.Action != protocol.ActPrompt {
			continue
		}
		if len(models) == 0 { // as an agent of a sub-workflow finds its own
			if r, err := loaded.Resolve(x.Name, nil, nil, os.LookupEnv); err == nil {
				models = r.Models
			}
		}
		f(x.of.Workflow, x.path+x.Name, models)
	}
}

// unreachable names all agents none of whose models can be opened, such as for want of a key.
// What a script or a tape answers needs none.
func unreachable(loaded *config.Loaded, c engine.Candidate) error {
	open := loaded.Registry().Open
	whys := map[string]string{} // by model
	var order []string
	roles := map[string][]string{} // by why
	agents(loaded, c, func(_ *protocol.Workflow, role string, models []string) {
		first := ""
		for _, m := range models {
			why, tried := whys[m]
			if !tried && !Scripted(m) {
				if _, err := open(m, filepath.Dir(c.File)); err != nil {
					why = err.Error()
					if e := (*model.Error)(nil); errors.As(err, &e) {
						why = e.Message
					}
				}
				whys[m] = why
			}
			if why == "" {
				return
			}
			if first == "" {
				first = why
			}
		}
		if first == "" {
			return // it names no model: told before
		}
		if roles[first] == nil {
			order = append(order, first)
		}
		roles[first] = append(roles[first], role)
	})
	if len(order) == 0 {
		return nil
	}
	for i, why := range order {
		order[i] = fmt.Sprintf("%s: %s", strings.Join(roles[why], ", "), why)
	}
	return protocol.ErrModel.With("nothing has run; wf models lists the providers, and which keys are set",
		"no model can be used by\n  %s", strings.Join(order, "\n  "))
}

// KnownModels refuses models that no provider here has: what is begun with them could never go on. Whether a provider can be reached
// is not asked.
func (u *Setup) KnownModels(models map[string][]string) error {
	loaded, err := u.Config()
	if err != nil {
		return err
	}
	registry := loaded.Registry()
	for _, list := range models {
		for _, m := range list {
			if err := registry.Known(m); err != nil {
				return protocol.ErrModel.With("wf models lists the providers", "%v", err)
			}
		}
	}
	return nil
}

// Scripted reports whether a model answers from a file: it needs no key, and costs nothing.
func Scripted(model string) bool {
	return strings.HasPrefix(model, script.Prefix) || strings.HasPrefix(model, tape.Prefix)
}

// unbounded names the models without a price, where a limit of cost would not count them and no
// limit of tokens holds in its place.
func (u *Setup) unbounded(loaded *config.Loaded, c engine.Candidate) error {
	table := loaded.Table()
	var unknown, uncounted []string
	where := ""
	agents(loaded, c, func(w *protocol.Workflow, _ string, models []string) {
		limits := c.Limits
		if w != c.Program.Workflow && limits.Cost == 0 {
			limits = w.Limits // of a sub-workflow
		}
		if limits.Cost == 0 {
			return
		}
		for _, m := range models {
			_, known := table.Of(m)
			switch {
			case known:
			case limits.Tokens > 0:
				uncounted = append(uncounted, m)
			case !slices.Contains(unknown, m):
				unknown = append(unknown, m)
				if w != c.Program.Workflow && c.Limits.Cost == 0 {
					where = " of the sub-workflow " + w.Name
				}
			}
		}
	})
	if len(uncounted) > 0 && c.New {
		slices.Sort(uncounted)
		why := "is unknown"
		if slices.ContainsFunc(uncounted, loaded.Offered) {
			why = "is in " + loaded.Project.Path + ", which is not trusted (wf trust)"
		}
		u.warnf("limits.cost_usd does not count %s, since its price %s; limits.tokens holds",
			strings.Join(slices.Compact(uncounted), ", "), why)
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	if i := slices.IndexFunc(unknown, loaded.Offered); i >= 0 {
		return protocol.ErrPrice.With("look at the prices, then wf trust; or "+tokenWay(c, where),
			"limits.cost_usd%s cannot hold: %s names a price of %s and is not trusted", where, loaded.Project.Path, unknown[i])
	}
	return protocol.ErrPrice.With(priceWays(unknown, c, where),
		"limits.cost_usd%s cannot hold: the price of %s is unknown (prices of %s)", where, strings.Join(unknown, ", "), table.Date)
}

// priceWays are the two ways out of a limit of cost that cannot hold.
func priceWays(unknown []string, c engine.Candidate, where string) string {
	var b strings.Builder
	b.WriteString("set the price in your own config (" + UserConfig() + "), or in .wf/config.yaml and then wf trust, in millionths of a dollar per million tokens, with your own numbers\n" +
		"    (1000000 is $1; 0 where it costs nothing, as on a server of yours):\n\n      prices:\n")
	for _, m := range unknown {
		fmt.Fprintf(&b, "        %q: {input: 1000000, output: 5000000}\n", m)
	}
	b.WriteString("\n    or " + tokenWay(c, where))
	return b.String()
}

// UserConfig is the config of the user; the prices in it count as they are.
func UserConfig() string {
	dir, err := UserDir("XDG_CONFIG_HOME", ".config")
	if err != nil {
		return "~/.config/wf/" + config.FileName
	}
	return filepath.Join(dir, config.FileName)
}

// tokenWay is the limit that holds without prices.
func tokenWay(c engine.Candidate, where string) string {
	const way = "bound tokens in place of money: "
	switch {
	case where != "" || c.New:
		return way + "limits: {tokens: 500000} in the workflow" + where
	case c.Fork:
		return way + "wf fork … --limit tokens=500000"
	}
	return way + fmt.Sprintf("wf resume %s --limit tokens=500000", c.Run)
}
