package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/engine/lang"
	"wf/protocol"
)

// wrongKept is how many lines are told of what a check and expectations find.
const wrongKept = 50

// judge holds a run against what its case expects, and has it checked.
func (x *evaluation) judge(ctx context.Context, j job, v *api.Run, dir string, r *api.EvalRun) error {
	ended, err := endedOf(v)
	if err != nil {
		return err
	}
	r.Wrong = j.c.Expect.Judge(ended)
	if j.c.Check != "" && len(r.Wrong) == 0 {
		code, last, err := x.check(ctx, j.c, v, dir)
		if err != nil {
			return err
		}
		if r.Exit = &code; code != 0 {
			wrong := fmt.Sprintf("check: ended with %d", code)
			if last != "" {
				wrong += ": " + lang.CutText(last, 300)
			}
			r.Wrong = append(r.Wrong, wrong)
		}
	}
	if n := len(r.Wrong); n > wrongKept {
		r.Wrong = append(r.Wrong[:wrongKept:wrongKept], fmt.Sprintf("… and %d more", n-wrongKept))
	}
	r.Verdict = api.EvalPassed
	if len(r.Wrong) > 0 {
		r.Verdict, r.Why = api.EvalFailed, strings.Join(r.Wrong, "\n")
	}
	return nil
}

// check runs the check of a case, confined unless the user said otherwise: the suite, and what a run left, may be written
// by an agent.
func (x *evaluation) check(ctx context.Context, c *lang.SuiteCase, v *api.Run, dir string) (code int, last string, err error) {
	of := Check{Command: c.Check, Sandbox: protocol.SandboxOn}
	if x.Show != nil {
		of.Show = func(line string) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.Show(c.Name, line)
		}
	}
	if x.Sandbox == protocol.SandboxOff {
		of.Sandbox = protocol.SandboxOff
	}
	return of.run(ctx, x.Local, v, dir, of.confined(x.Local, true))
}

// endedOf is a run as expectations see it.
func endedOf(v *api.Run) (lang.Ended, error) {
	e := lang.Ended{Status: string(v.Status), Steps: map[string]*lang.Step{},
		Run: map[string]any{"status": string(v.Status), "reason": v.Reason, "code": v.Code, "cost_usd": nil, "tokens": int(tokensOf(v)), "steps": v.Count()}}
	if v.CostUSD != nil {
		e.Run["cost_usd"] = *v.CostUSD
	}
	var err error
	object := func(b protocol.JSON) map[string]any {
		if len(b) == 0 || string(b) == "null" {
			return nil
		}
		m, failed := lang.DecodeObject(json.RawMessage(b))
		err = errors.Join(err, failed)
		return m
	}
	e.Inputs, e.Outputs = object(v.Info.Inputs), object(v.Outputs)
	items := map[string][]*api.Step{}
	for _, s := range v.Steps {
		if s.Item != nil {
			if of := items[s.Role]; len(of) > 0 && of[0].Visit != s.Visit {
				items[s.Role] = nil
			}
			items[s.Role] = append(items[s.Role], s)
		}
		e.Steps[s.Role] = stepOf(s, &err)
	}
	for role, of := range items { // of a fan-out the list in item order
		slices.SortFunc(of, func(a, b *api.Step) int { return *a.Item - *b.Item })
		list := make([]any, len(of))
		for i, s := range of {
			list[i] = stepOf(s, &err).Output
		}
		e.Steps[role].Output = list
	}
	return e, err
}

func stepOf(s *api.Step, failed *error) *lang.Step {
	out := &lang.Step{Text: s.Text, Status: s.Status, Visit: s.Visit}
	if len(s.Output) > 0 && string(s.Output) != "null" {
		v, err := lang.DecodeJSON([]byte(s.Output))
		*failed = errors.Join(*failed, err)
		out.Output = v
	}
	if m, ok := out.Output.(map[string]any); ok {
		if n, ok := m["exit_code"].(int); ok && s.Action == protocol.ActRun {
			out.ExitCode = &n
		}
		if _, has := m["text"]; !has && s.Text != "" {
			m["text"] = s.Text
		}
	}
	return out
}
