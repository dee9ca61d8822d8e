package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

// evalFiles are where a result is written besides.
type evalFiles struct {
	junit, update *outTo
	updateName    string
}

// evalEnded shows what an evaluation found, writes its files, and says by its error what became of it.
func (a *app) evalEnded(ctx context.Context, found *api.Eval, err error, to evalFiles) error {
	if found == nil {
		return err
	}
	if werr := to.junit.write(func(w io.Writer) error { return render.WriteJUnit(w, found) }); werr != nil {
		return errors.Join(werr, err)
	}
	if render.InActions() && !a.Quiet {
		for _, line := range render.EvalAnnotations(found) {
			fmt.Fprintln(a.Err, line)
		}
	}
	if err := answer(a, found, nil, a.ShowEval); err != nil {
		return err
	}
	var sig signalled
	if errors.As(context.Cause(ctx), &sig) {
		return interrupted{errRunSuspended.With("the same command with --continue goes on", "%s; the evaluation stopped, nothing is lost", sig), sig}
	}
	if err != nil {
		return err
	}
	if to.update != nil {
		if !found.Complete || found.Errors > 0 {
			a.Progress("%s was not written: not all cases have a result", to.updateName)
		} else if err := to.update.write(func(w io.Writer) error { return writeJSON(w, found) }); err != nil {
			return err
		}
	}
	return evalOutcome(found)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// evalOutcome is what a result is to the caller of wf: nil where nothing got worse.
func evalOutcome(e *api.Eval) error {
	counts := map[string]bool{} // cases that count without a baseline
	for _, r := range e.Changes {
		counts[r.Case] = counts[r.Case] || r.Old == "" && r.Kind == "new"
	}
	verdict := map[string]api.EvalVerdict{}
	failed := 0
	var broken, cut *api.EvalCase
	for i := range e.Cases {
		c := &e.Cases[i]
		verdict[c.Name] = c.Verdict
		switch c.Verdict {
		case api.EvalFailed:
			if e.Baseline == "" || counts[c.Name] {
				failed++
			}
		case api.EvalError:
			if broken == nil {
				broken = c
			}
		case api.EvalCut:
			if cut == nil {
				cut = c
			}
		}
	}
	worse := 0
	for _, r := range e.Regressions {
		if v := verdict[r.Case]; v != api.EvalError && v != api.EvalCut {
			worse++
		}
	}
	switch {
	case worse > 0:
		return errDifference.With("wf log RUN shows a run; --update-baseline FILE takes the new result as the baseline", "%s against %s", protocol.Plural(worse, "regression"), e.Baseline)
	case failed > 0:
		return errDifference.With("wf log RUN shows a run", "%d of %s failed", failed, protocol.Plural(len(e.Cases), "case"))
	case broken != nil:
		why := &protocol.Error{Code: broken.Code}
		return why.With(broken.Hint, "%s could not be judged, such as %q: %s", protocol.Plural(e.Errors, "case"), broken.Name, render.OneLine(broken.Why, 300))
	case cut != nil:
		return service.ErrEvalLimit.With("with --continue and a higher limit it goes on", "%s cut by a limit of the evaluation, such as %q", protocol.Plural(e.Cut, "case"), cut.Name)
	}
	return nil
}

// outTo is a file that is written at the end; nil is none.
type outTo struct{ *compose.File }

// outFile finds a file, before anything runs.
func outFile(path string) (*outTo, error) {
	if path == "" {
		return nil, nil
	}
	f, err := compose.OutFile(path)
	if err != nil {
		return nil, err
	}
	return &outTo{f}, nil
}

func (o *outTo) write(fill func(io.Writer) error) error {
	if o == nil {
		return nil
	}
	return o.Replace(compose.Shared, fill)
}

func (o *outTo) close() {
	if o != nil {
		o.Close()
	}
}
