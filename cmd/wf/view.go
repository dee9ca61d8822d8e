package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/mcp"
	"wf/api"
	"wf/protocol"
)

// lastSteps is how many steps of a run a person is shown.
const lastSteps = 200

// outcome is what the state of a run is to the caller of wf: nil when it is done.
func outcome(v *api.Run) error {
	switch v.Status {
	case protocol.Done:
		return nil
	case protocol.Failed:
		return fail(errRunFailed, "wf log "+string(v.ID)+" shows the step that failed", "run %s failed%s", v.ID, because(v.Reason))
	case protocol.Cancelled:
		return fail(errRunCancelled, "", "run %s was cancelled%s", v.ID, because(v.Reason))
	case protocol.Waiting:
		return fail(protocol.ErrWaiting, next(v), "run %s waits%s", v.ID, waitsFor(v))
	case protocol.Suspended:
		return suspended(v)
	}
	if stands := standingOf(v); stands.idle != "" {
		return fail(errRunSuspended, resumes(v.ID, v.Info.Parent, v.Info.ForkedFrom != nil)+" goes on with it", "run %s is not over: %s", v.ID, stands.why())
	}
	return fail(errRunSuspended, "wf watch "+string(v.ID)+" follows it", "run %s is not over", v.ID)
}

// suspended tells a limit, a missing model and other errors apart: they have exit statuses of
// their own.
func suspended(v *api.Run) error {
	resume := "wf resume " + string(v.ID)
	if v.Mend != nil {
		return fail(errRunSuspended, "a run keeps its definition: "+nextMend(v), "run %s is suspended%s", v.ID, because(v.Reason))
	}
	if v.Suspended == protocol.ByLimit {
		return fail(errRunLimit, next(v), "run %s is suspended%s", v.ID, because(v.Reason))
	}
	if why := (&protocol.Error{Code: v.Code}); v.Code != "" && statusOf(why) != statusOf(errRunSuspended) {
		hint := "put it right, then " + resume
		if v.Code == mcp.ErrUntrusted.Code {
			hint = mcp.ErrUntrusted.Hint + "; then " + resume
		}
		return fail(why, hint, "%s; run %s is suspended, nothing is lost", v.Reason, v.ID)
	}
	return fail(errRunSuspended, "put it right, then "+resume, "run %s is suspended%s", v.ID, because(v.Reason))
}

func waitsFor(v *api.Run) string {
	if len(v.Waiting) == 0 {
		return ""
	}
	switch w := v.Waiting[0]; w.Kind {
	case protocol.WaitTimer:
		return " for its timer"
	case protocol.WaitSignal:
		return " for the signal " + w.Question
	default:
		return ": " + w.Step + ` asks "` + oneLine(w.Question, 100) + `"`
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// next is the most useful next command.
func next(v *api.Run) string {
	id := string(v.ID)
	if v.Foreign && !v.Status.Final() {
		return "wf store adopt " + id + " · wf log " + id
	}
	switch v.Status {
	case protocol.Done:
		return "wf show " + id + " · wf verify " + id + " · wf replay " + id + " --check"
	case protocol.Waiting:
		return nextAnswer(v)
	case protocol.Suspended:
		if v.Suspended == protocol.ByLimit {
			return nextLimit(v)
		}
		if v.Mend != nil {
			return nextMend(v)
		}
		return "wf log " + id + " · wf resume " + id
	case protocol.Failed, protocol.Cancelled:
		if n := len(v.Steps); n > 0 {
			return "wf log " + id + " · wf fork " + id + ":" + v.Steps[n-1].ID
		}
		return "wf log " + id
	}
	if v.Idle != "" {
		return resumes(v.ID, v.Info.Parent, v.Info.ForkedFrom != nil) + " · wf log " + id
	}
	return "wf watch " + id + " · wf log " + id + " -f"
}

// nextMend goes on under the definition as it is once it was edited.
func nextMend(v *api.Run) string {
	file := v.Info.File
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(cwd, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
	}
	if file == "" {
		file = "fixed.yaml"
	}
	file = protocol.ShellWord(file)
	if v.Mend.Step == "" {
		return fmt.Sprintf("correct %s, then wf run %s", file, file)
	}
	after := ""
	if v.Mend.After {
		after = " --after"
	}
	return fmt.Sprintf("correct %s, then wf fork %s%s --with %s --run", file, protocol.ShellWord(string(v.ID)+":"+v.Mend.Step), after, file)
}

// nextLimit goes on beyond a limit: that of a run is raised, that of an edge or a role is
// passed once by whoever resumes.
func nextLimit(v *api.Run) string {
	resume := "wf resume " + string(v.ID)
	for _, limit := range []string{"steps", "duration", "cost_usd", "tokens"} {
		if strings.HasPrefix(v.Reason, "limits."+limit+" ") {
			return resume + " --limit " + limit + "=… with a higher limit"
		}
	}
	return resume + " passes the bound once"
}

func nextAnswer(v *api.Run) string {
	for _, w := range v.Waiting {
		answer := fmt.Sprintf("wf answer %s:%s", v.ID, w.Step)
		fields := fieldFlags(string(w.Form))
		switch {
		case w.Kind == protocol.WaitTimer:
			continue
		case w.Kind == protocol.WaitSignal:
			return fmt.Sprintf("wf answer %s --signal %s", v.ID, w.Question)
		case w.Kind == protocol.WaitApproval: // whether to allow it is for the user to say
			return fmt.Sprintf(`%s --choice allow, or: wf answer %s:%s "deny WHY"; wf show %s has all of the call`, answer, v.ID, w.Step, v.ID)
		case len(w.Choices) > 0:
			pick := max(0, slices.IndexFunc(w.Choices, func(c protocol.Choice) bool { return c.Primary }))
			answer += " --choice " + protocol.ShellWord(w.Choices[pick].Value)
		case fields == "":
			answer += ` "…"`
		}
		return strings.TrimSpace(answer + " " + fields)
	}
	return "wf resume " + string(v.ID)
}

// ended reports whether the visit has a record.
func ended(s *api.Step) bool { return s.CID != nil }

// result is how a step ended, in a word or two.
func result(s *api.Step) string {
	var d struct {
		ExitCode *int `json:"exit_code"`
	}
	switch {
	case !ended(s):
		return s.Status
	case s.Action == protocol.ActRun && json.Unmarshal(s.Output, &d) == nil && d.ExitCode != nil:
		return fmt.Sprintf("exit %d", *d.ExitCode)
	case s.Usage.Calls > 0:
		return used(s.Usage)
	}
	return s.Status
}

// said is the most telling text of a step: why it failed, or what it concluded.
func said(s *api.Step) string {
	switch {
	case s.Error != nil:
		return why(s.Error)
	case s.Text != "":
		return gist(s.Text)
	}
	fields, err := fieldsOf(s.Output)
	if err != nil {
		return string(s.Output)
	}
	var parts []string
	for _, f := range fields {
		if text := f.text(); text != "" && (f.name != "exit_code" || s.Action != protocol.ActRun) { // which result tells
			parts = append(parts, f.name+": "+text)
		}
	}
	return strings.Join(parts, ", ")
}

// why says why a step failed; the reason of a parked one holds its phase already.
func why(e *protocol.ErrorInfo) string {
	if e.Phase == "" || strings.HasPrefix(e.Message, e.Phase+": ") {
		return e.Message
	}
	return e.Error()
}

// failures counts the attempts that did not work.
func failures(s *api.Step) int {
	n := 0
	for _, t := range s.Attempts {
		if t.Error != nil {
			n++
		}
	}
	return n
}

// used is what model calls used; what no provider told is a dash.
func used(u api.Usage) string {
	return fmt.Sprintf("in %s (cached %s) out %s", count(u.Input), count(u.Cached), count(u.Output))
}

func count(n *int64) string {
	if n == nil {
		return "–"
	}
	return fmt.Sprint(*n)
}

func shortOf(cid *string) string {
	if cid == nil {
		return ""
	}
	return shortCID(*cid)
}
