package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"wf/agentkit/config"
	"wf/cmd/internal/render"
	"wf/service/compose"
)

func newModels(a *app) *cobra.Command {
	var probe bool
	cmd := &cobra.Command{
		Use:   "models [FILE]",
		Short: "Show the providers there are, and which models a workflow would use",
		Long: `Show where models come from: the providers of this binary and of the configs, whether their keys are set,
and the default. With a workflow also what each of its agents would use, and why. --probe asks the servers on
this machine, and those of the configs that want no key; what it finds is only suggested.`,
		Example: `  wf models
  wf models workflow.yaml
  wf models --probe`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.models(cmd.Context(), args, probe) },
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "ask the servers on this machine which models they have")
	return cmd
}

// modelsJSON is wf.models/v1.
type modelsJSON struct {
	Schema    string           `json:"schema"`
	Workflow  string           `json:"workflow,omitempty"`
	Providers []providerJSON   `json:"providers"`
	Default   []string         `json:"default"`
	Roles     []resolutionJSON `json:"roles"`
	Prices    string           `json:"prices"` // date of the table
	Found     []config.Found   `json:"found"`
}

type providerJSON struct {
	Name    string `json:"name"`
	Wire    string `json:"wire"`
	BaseURL string `json:"base_url"`
	KeyEnv  string `json:"key_env"`
	KeySet  bool   `json:"key_set"`
	Context int    `json:"context"`
	Engine  string `json:"engine"`
	From    string `json:"from"`    // file of the config, "" for this binary
	Blocked string `json:"blocked"` // why it cannot be used before wf trust
}

type resolutionJSON struct {
	Role   string        `json:"role"`
	Models []string      `json:"models"`
	Source config.Source `json:"source"`
	Detail string        `json:"detail"`
}

func (a *app) models(ctx context.Context, args []string, probe bool) error {
	c, err := a.Config()
	if err != nil {
		return err
	}
	out := modelsJSON{Schema: "wf.models/v1", Providers: providers(c), Default: c.Model, Roles: []resolutionJSON{}, Prices: c.Table().Date, Found: []config.Found{}}
	if out.Default == nil {
		out.Default = []string{}
	}
	if len(args) == 1 {
		d, err := a.Read(args[0])
		if err != nil {
			return err
		}
		p, err := a.valid(d)
		if err != nil {
			return err
		}
		_, all, err := a.ResolveModels(ctx, p, nil)
		if err != nil {
			return err
		}
		out.Workflow = p.Workflow.Name
		for _, r := range all {
			out.Roles = append(out.Roles, resolutionJSON(r))
		}
	}
	if probe {
		bases := config.Loopback
		for _, p := range out.Providers {
			if p.From != "" && p.KeyEnv == "" && p.Wire == config.WireOpenAI && p.BaseURL != "" && p.Blocked == "" {
				bases = append([]string{p.BaseURL}, bases...)
			}
		}
		out.Found = config.Probe(ctx, unique(bases), compose.ProbeTime)
	}
	if a.AsJSON() {
		return a.Answer(out)
	}
	return a.modelTable(out, probe)
}

// providers are those of this binary, then those of the configs.
func providers(c *config.Loaded) []providerJSON {
	isSet := func(name string) bool { return name != "" && os.Getenv(name) != "" }
	out := []providerJSON{}
	for _, p := range []providerJSON{
		{Name: "anthropic", Wire: config.WireAnthropic, BaseURL: cmp.Or(os.Getenv("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"), KeyEnv: "ANTHROPIC_API_KEY"},
		{Name: "openai", Wire: config.WireOpenAI, BaseURL: cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1"), KeyEnv: "OPENAI_API_KEY"},
	} {
		if _, replaced := c.Providers[p.Name]; !replaced {
			p.KeySet = isSet(p.KeyEnv)
			out = append(out, p)
		}
	}
	for _, name := range sortedKeys(c.Providers) {
		p := c.Providers[name]
		out = append(out, providerJSON{Name: name, Wire: p.Wire, BaseURL: p.BaseURL, KeyEnv: p.KeyEnv, KeySet: isSet(p.KeyEnv),
			Context: p.Context, Engine: p.Engine, From: p.From, Blocked: c.Blocked(name)})
	}
	return out
}

func unique(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range list {
		if s = strings.TrimSuffix(s, "/"); !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func (a *app) modelTable(m modelsJSON, probed bool) error {
	p := a.Out.Paint()
	rows := [][]string{{p.Dim("models"), p.Dim("wire"), p.Dim("server"), p.Dim("key"), p.Dim("from")}}
	for _, x := range m.Providers {
		key := "none"
		switch {
		case x.Blocked != "":
			key = "not trusted: " + x.Blocked
		case x.KeySet:
			key = "$" + x.KeyEnv
		case x.KeyEnv != "":
			key = "$" + x.KeyEnv + " is not set"
		}
		rows = append(rows, []string{render.Visible(x.Name) + "/…", x.Wire, render.Visible(x.BaseURL), render.Visible(key), render.Visible(x.From)})
	}
	rows = append(rows, []string{"script/FILE", "", "answers from a file"}, []string{"tape/FILE", "", "traffic recorded with wf run --record"})
	if err := render.Table(a.Out, rows); err != nil {
		return err
	}
	if len(m.Default) > 0 {
		fmt.Fprintf(a.Out, "default: %s\n", render.Visible(strings.Join(m.Default, ", ")))
	}
	for _, r := range m.Roles {
		fmt.Fprintf(a.Out, "%s\n", render.Visible(config.Resolution(r).String()))
	}
	if m.Workflow != "" && len(m.Roles) == 0 {
		fmt.Fprintf(a.Out, "%s has no agents\n", render.Visible(m.Workflow))
	}
	fmt.Fprintf(a.Out, "prices of %s; wf doctor tells where they come from\n", m.Prices)
	for _, f := range m.Found {
		fmt.Fprintf(a.Out, "found %s: %s\n", f.BaseURL, render.Visible(strings.Join(f.Models, ", ")))
	}
	if probed && len(m.Found) == 0 {
		fmt.Fprintln(a.Out, "no server on this machine answers")
	}
	return nil
}
