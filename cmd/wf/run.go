package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/agentkit/config"
	"wf/api"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

type runFlags struct {
	api.Start
	inputs     []string
	inputsFile string
	models     []string
	dir        string
	detach     bool
	cached     bool
	noCache    bool
	offline    bool
	record     string
	helpInputs bool
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a workflow",
		Long: `Run a workflow until it is done, waits for someone, or is suspended. Every step is on disk before
the next begins: Ctrl-C, a crash or kill -9 lose nothing, and wf resume goes on.`,
		Example: `  wf run workflow.yaml
  wf run review.yaml -i topic="bbolt pages" -i draft=@draft.md

  # all inputs from a file, the outcome for a program
  wf run review.yaml -I inputs.json -o json

  # reuse no results, or perform nothing that has none
  wf run build.yaml --no-cache
  wf run build.yaml --offline

  # another model for one role
  wf run review.yaml --model writer=openai/gpt-5`,
		Args: takes(1, 1, "a workflow file"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.inputs, "input", "i", nil, "an input: name=value, or name=@file")
	flags.StringVarP(&f.inputsFile, "inputs", "I", "", "inputs as a JSON object from a file, - is stdin")
	a.beginFlags(flags, &f)
	flags.StringVar(&f.RequestID, "request-id", "", "start nothing when a run of this id exists already; show that one")
	flags.IntVar(&f.Priority, "priority", 0, "in the queue of a --hub, from -9 to 9: larger ones are begun first")
	flags.StringVar(&f.Title, "title", "", "title of the run (default: the workflow's name)")
	flags.StringVar(&f.Type, "type", "", "type of the run, kept with it")
	flags.StringVar(&f.Scope, "scope", "", "scope of the run, kept with it")
	flags.StringVar(&f.TargetUser, "target-user", "", "whom the run is for, kept with it")
	flags.BoolVar(&f.detach, "detach", false, "start it in the background and show its id")
	flags.StringVar(&f.record, "record", "", "append every model call to a file, which tape/FILE answers from")
	flags.StringVar(&f.Context, "context", "", "how every agent sees its past in this run: conversation, task or fresh")
	flags.BoolVar(&f.cached, "cached", false, "reuse results of roles with cache, whatever WF_CACHE says (default)")
	flags.BoolVar(&f.noCache, "no-cache", false, "reuse no results; those of this run are kept for others")
	flags.BoolVar(&f.offline, "offline", false, "perform no visit of a role with cache: where there is no result to reuse, the run stops and says what differs")
	cmd.MarkFlagsMutuallyExclusive("cached", "no-cache", "offline")
	a.everyFlag(flags)
	flags.BoolVar(&f.helpInputs, "help-inputs", false, "show the inputs of the workflow")
	return cmd
}

// beginFlags are those of each command that begins a run.
func (a *app) beginFlags(flags *pflag.FlagSet, f *runFlags) {
	flags.StringArrayVar(&f.AllowSecretInputs, "allow-secret-input", nil, "an input that may hold a secret, which is then stored, shown and sent to models")
	flags.StringArrayVar(&f.models, "model", nil, "model for every role, or role=model; several are tried in order")
	flags.StringVar(&f.dir, "dir", "", "workspace in which commands and tools work (default: here)")
	flags.StringArrayVar(&f.Tags, "tag", nil, "a tag, kept with the run")
	a.driveFlags(flags)
}

func (a *app) run(ctx context.Context, path string, f runFlags) error {
	if f.helpInputs {
		_, p, err := a.readValid(path)
		if err != nil {
			return err
		}
		return a.ShowInputs(p.Workflow)
	}
	if _, err := protocol.ParseContext(f.Context); err != nil {
		return usagef("--context %s: want conversation, task or fresh", f.Context)
	}
	var err error
	if f.Cache, err = f.cacheMode(os.Getenv("WF_CACHE")); err != nil {
		return err
	}
	if url := a.hubURL(); url != "" {
		return a.atServer(url, func(p *target) error {
			run, fresh, err := a.submit(ctx, p, path, f)
			if err != nil {
				return err
			}
			return a.begun(ctx, p, run, fresh, f)
		})
	}
	if f.Priority != 0 {
		return usagef("--priority %d is for the queue of a --hub: a run of this machine begins at once", f.Priority)
	}
	launch, err := a.launch(ctx, path, f)
	if err != nil {
		return err
	}
	return a.atNew(ctx, func(p *target) error { return a.begin(ctx, p, launch, f) })
}

// cacheMode is what the run does about results: as the flags say, or else WF_CACHE.
func (f *runFlags) cacheMode(environ string) (string, error) {
	switch {
	case f.cached:
		return "", nil
	case f.noCache:
		return protocol.CacheOff, nil
	case f.offline:
		return protocol.CacheOffline, nil
	}
	mode, err := protocol.ParseCache(environ)
	if err != nil {
		return "", usagef("WF_CACHE: %v", err)
	}
	return mode, nil
}

// readValid reads a definition that has no errors.
func (a *app) readValid(path string) (compose.Definition, *lang.Program, error) {
	d, err := a.Read(path)
	if err != nil {
		return d, nil, err
	}
	p, err := a.valid(d)
	return d, p, err
}

// launch reads what a run of this machine begins with.
func (a *app) launch(ctx context.Context, path string, f runFlags) (l engine.Launch, err error) {
	d, p, err := a.readValid(path)
	if err != nil {
		return l, err
	}
	inputs, err := a.inputs(p, f)
	err = wantsInputs(err, path)
	if err != nil {
		return l, err
	}
	models, err := modelFlags(p, f.models)
	if err != nil {
		return l, err
	}
	models, resolved, err := a.ResolveModels(ctx, p, models)
	if err != nil {
		return l, err
	}
	if err := a.SecretsSet(p); err != nil {
		return l, err
	}
	if err := a.mayRun(ctx, p, d); err != nil {
		return l, err
	}
	workspace, file, err := places(path, f.dir)
	if err != nil {
		return l, err
	}
	here, err := os.Getwd()
	if err != nil {
		return l, fmt.Errorf("find the directory: %w", err)
	}
	if f.record != "" && f.detach {
		return l, usagef("--record needs the run to stay here: leave --detach out")
	}
	caused, err := protocol.ParseCausedBy(os.Getenv(protocol.CausedByEnv))
	if err != nil {
		return l, err
	}
	for _, name := range p.Unset(inputs) {
		a.Progress("input %s was not given: it is null, and nothing in a text (wf run %s --help-inputs)", name, protocol.ShellWord(path))
	}
	untold, err := a.Untold(p, path)
	if err != nil {
		return l, err
	}
	if untold != "" {
		a.Progress("%s", untold)
	}
	a.tellModels(resolved)
	return engine.Launch{
		Program: p, Source: d.Source, Inputs: inputs,
		Title: f.Title, Description: p.Workflow.Description, Type: f.Type, Scope: f.Scope, Tags: f.Tags,
		CreatedBy: compose.User(), TargetUser: f.TargetUser, RequestID: f.RequestID,
		Workspace: workspace, Place: here, File: file, Models: models, Context: protocol.ContextMode(f.Context), Cache: f.Cache, AllowSecretInputs: f.AllowSecretInputs, CausedBy: caused,
	}, nil
}

// tellModels prints how the models were found, one line for roles that agree.
func (a *app) tellModels(all []config.Resolution) {
	if a.AsJSON() {
		return
	}
	var order []string
	roles := map[string][]string{}
	for _, r := range all {
		key := strings.TrimPrefix(r.String(), r.Role+": ")
		if roles[key] == nil {
			order = append(order, key)
		}
		roles[key] = append(roles[key], r.Role)
	}
	for _, key := range order {
		a.Progress("  %s %s: %s", a.Err.Dim("model"), strings.Join(roles[key], ", "), key)
	}
}

// recordTo has every model call from here on recorded in a file, "" in none; stop ends that.
func (a *app) recordTo(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	to, err := compose.OutFile(path)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	f, err := to.Open(os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return a.Record(f), nil
}

// begin begins a run of this machine, and goes on with it.
func (a *app) begin(ctx context.Context, p *target, l engine.Launch, f runFlags) error {
	stop, err := a.recordTo(f.record)
	if err != nil {
		return err
	}
	run, fresh, err := p.here.Begin(ctx, l)
	if err != nil {
		return errors.Join(err, stop())
	}
	return errors.Join(a.begun(ctx, p, run, fresh, f), stop())
}

// begun goes on with a run that has begun; with a request id that was used before it shows that run.
func (a *app) begun(ctx context.Context, p *target, run protocol.RunID, fresh bool, f runFlags) error {
	if !fresh {
		a.Progress("request %s was started before, as run %s", f.RequestID, run)
		v, err := a.shown(ctx, p, run)
		if err != nil {
			return err
		}
		if f.detach || v.Driven == nil || !*v.Driven {
			return a.tellEnd(v)
		}
		return a.attend(ctx, p, run, v.Seq)
	}
	if f.detach {
		return a.detached(ctx, p, run)
	}
	if err := a.headline(ctx, p, run); err != nil {
		return err
	}
	from := protocol.Seq(1) // the headline says that it has started
	if a.Format == "jsonl" {
		from = 0
	}
	return a.attend(ctx, p, run, from)
}

// detached leaves a run to another process: the server, or one that is started for it.
func (a *app) detached(ctx context.Context, p *target, run protocol.RunID) error {
	behind := "at " + p.name + "; wf watch " + string(run)
	if p.here != nil {
		pid, err := daemon.Detach(ctx, a.Setup, p.here.Store, run)
		if err != nil {
			return err
		}
		behind = fmt.Sprintf("in the background, as process %d; wf log %s -f", pid, run)
	}
	if a.AsJSON() {
		v, err := p.Run(ctx, run, api.Window{})
		if err != nil {
			return err
		}
		return a.Answer(v)
	}
	a.Progress("run %s goes on %s follows it", run, behind)
	_, err := fmt.Fprintln(a.Out, run)
	return err
}

// wantsInputs names the command that shows what inputs a workflow takes, behind an error of them.
func wantsInputs(err error, path string) error {
	if errors.Is(err, protocol.ErrInputs) && protocol.HintOf(err) == protocol.ErrInputs.Hint {
		return protocol.Hinted(err, "wf run "+protocol.ShellWord(path)+" --help-inputs shows what it takes")
	}
	return err
}

// inputs are those of the command line, as the workflow takes them.
func (a *app) inputs(p *lang.Program, f runFlags) (protocol.JSON, error) {
	given, err := a.given(p.Coerce, f)
	if err != nil {
		return nil, err
	}
	return p.Inputs(given)
}

// given gathers the inputs: those of the file, then those of the command line, whose texts read makes what the
// workflow wants.
func (a *app) given(read func(name, text string) (any, error), f runFlags) (map[string]any, error) {
	given := map[string]any{}
	if f.inputsFile != "" {
		b, err := a.readArgument(f.inputsFile)
		if err != nil {
			return nil, protocol.ErrInputs.With("", "-I %s: %v", f.inputsFile, err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(b, &fields); err != nil {
			return nil, protocol.ErrInputs.With(`inputs are one JSON object, such as {"topic": "bbolt pages"}`, "-I %s: %s", f.inputsFile, noObject(err))
		}
		for name, value := range fields {
			given[name] = value
		}
	}
	for _, arg := range f.inputs {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usagef("-i %q: want name=value, or name=@file", arg)
		}
		if file, ok := strings.CutPrefix(text, "@"); ok {
			b, err := a.readArgument(file)
			if err != nil {
				return nil, protocol.ErrInputs.With("", "-i %s: %v", arg, err)
			}
			text = string(b)
		}
		value, err := read(name, text)
		if err != nil {
			return nil, err
		}
		given[name] = value
	}
	return given, nil
}

// noObject says why bytes are no JSON object.
func noObject(err error) string {
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "a JSON " + typ.Value + " is no object"
	}
	return err.Error()
}

// readArgument reads a file named on the command line; - is stdin.
func (a *app) readArgument(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(a.in)
	}
	return os.ReadFile(path)
}

// modelFlags reads --model [role=]model.
func modelFlags(p *lang.Program, flags []string) (map[string][]string, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	out := map[string][]string{}
	for _, f := range flags {
		role, model, ok := strings.Cut(f, "=")
		if !ok {
			role, model = "", f
		}
		if model == "" {
			return nil, usagef("--model %q: want model, or role=model", f)
		}
		if !service.HasAgent(p, role) {
			return nil, usagef("--model %q: the workflow has no agent %q", f, role)
		}
		out[role] = append(out[role], model)
	}
	return out, nil
}

// places are where the run works and where its definition lies, both absolute.
func places(path, dir string) (workspace, file string, err error) {
	if workspace, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	if info, err := os.Stat(workspace); err != nil || !info.IsDir() {
		return "", "", usagef("--dir %s is no directory", dir)
	}
	if path == "-" {
		return workspace, filepath.Join(workspace, "stdin.yaml"), nil
	}
	file, err = filepath.Abs(path)
	return workspace, file, err
}
