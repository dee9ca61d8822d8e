package render

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// Next is the most useful next command.
func Next(v *api.Run) string {
	id := string(v.ID)
	log := wf("log", id)
	if v.Foreign && !v.Status.Final() {
		return wf("store", "adopt", id) + " · " + log
	}
	switch v.Status {
	case protocol.Done:
		return wf("show", id) + " · " + wf("verify", id) + " · " + wf("replay", id, "--check")
	case protocol.Waiting:
		return nextAnswer(v)
	case protocol.Suspended:
		return nextSuspended(v)
	case protocol.Failed:
		if v.Cause != nil {
			return wf("explain", id) + " · " + nextFailed(v.ID, v.Cause.Step)
		}
		return nextOver(v)
	case protocol.Cancelled:
		return nextOver(v)
	}
	if len(v.Lacks) > 0 {
		return nextWorker(v.Lacks)
	}
	if v.Idle == api.Unattended {
		return ResumeCommand(v) + " · " + wf("serve") + " · " + wf("cancel", id)
	}
	if v.Idle != "" {
		return ResumeCommand(v) + " · " + log
	}
	return wf("watch", id) + " · " + wf("log", id, "-f")
}

// wf is a command line of wf that can be pasted.
func wf(words ...string) string { return "wf " + protocol.ShellCommand(words...) }

// nextSuspended goes on with a suspended run.
func nextSuspended(v *api.Run) string {
	id := string(v.ID)
	if v.Suspended == protocol.ByLimit {
		return nextLimit(v)
	}
	if v.Mend != nil {
		return NextMend(v)
	}
	next := wf("log", id) + " · " + wf("resume", id)
	if v.Suspended != protocol.ByError || v.Info.Parent != nil || ofProviders(v) {
		return next
	}
	if _, err := os.Stat(v.Info.File); err != nil { // on another machine, or one that comes with wf
		return next
	}
	file := definitionFile(v)
	return next + " · correct " + protocol.ShellWord(file) + ", then " + wf("fork", id, "--with", file, "--run")
}

// nextOver goes on from the newest step of a run that was cancelled, or of one that failed of which no more is known.
func nextOver(v *api.Run) string {
	for _, s := range slices.Backward(v.Steps) {
		if s.Via != protocol.ViaAlways {
			return wf("log", string(v.ID)) + " · " + wf("fork", string(v.ID)+":"+s.ID)
		}
	}
	return wf("log", string(v.ID))
}

// nextFailed shows a step behind a FAIL, and performs it again in a fork.
func nextFailed(run protocol.RunID, step string) string {
	at := string(run) + ":" + step
	return wf("log", at) + " · " + wf("fork", at)
}

// ofProviders reports whether what stopped a run is the failure of providers alone, which no other definition mends: they are down, or
// want a key.
func ofProviders(v *api.Run) bool {
	is := v.Code == protocol.ErrModel.Code
	for _, s := range v.Steps {
		if e := s.Error; s.Status == "failed" && e != nil {
			if e.Phase != "model" || e.Code == "invalid" {
				return false
			}
			is = true
		}
	}
	return is
}

// nextWorker starts the worker that a run waits for.
func nextWorker(lacks []string) string {
	has := slices.DeleteFunc(slices.Clone(lacks), func(x string) bool { return strings.HasPrefix(x, "place:") })
	switch {
	case len(has) == 0:
		return wf("serve") + " on the machine of its files"
	case len(has) < len(lacks):
		return wf("serve", "--has", strings.Join(has, ",")) + " on the machine of its files"
	}
	return wf("serve", "--has", strings.Join(has, ",")) + " on a machine that has it"
}

// NextMend goes on under the definition as it is once it was edited.
func NextMend(v *api.Run) string {
	file := cmp.Or(definitionFile(v), "fixed.yaml")
	if v.Mend.Step == "" {
		return "correct " + protocol.ShellWord(file) + ", then " + wf("run", file)
	}
	fork := []string{"fork", string(v.ID) + ":" + v.Mend.Step}
	if v.Mend.After {
		fork = append(fork, "--after")
	}
	return "correct " + protocol.ShellWord(file) + ", then " + wf(append(fork, "--with", file, "--run")...)
}

// definitionFile is the file of the definition as it is named here, "" where it is not known.
func definitionFile(v *api.Run) string {
	file := v.Info.File
	if file == "" {
		return ""
	}
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(cwd, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
	}
	return file
}

// nextLimit goes on beyond a limit: that of a run is raised, that of an edge or a role is
// passed once by the command that resumes.
func nextLimit(v *api.Run) string {
	resume := wf("resume", string(v.ID))
	for _, limit := range []string{"steps", "duration", "cost_usd", "tokens"} {
		if strings.HasPrefix(v.Reason, "limits."+limit+" ") {
			return wf("resume", string(v.ID), "--limit", limit+"="+raised(limit, v.Reason)) + " with a higher limit"
		}
	}
	return resume + " passes the bound once"
}

// raised is twice what a reason says that a limit has come to, "…" where it says nothing of that.
func raised(limit, reason string) string {
	_, reached, _ := strings.Cut(reason, ": ")
	most, _, _ := strings.Cut(reached, " of ")
	switch limit {
	case "duration":
		if d, err := time.ParseDuration(most); err == nil {
			return (2 * d).String()
		}
	case "cost_usd":
		if n, err := strconv.ParseFloat(strings.TrimPrefix(most, "$"), 64); err == nil {
			return strconv.FormatFloat(2*n, 'f', -1, 64)
		}
	default:
		if n, err := strconv.ParseInt(most, 10, 64); err == nil {
			return strconv.FormatInt(2*n, 10)
		}
	}
	return "…"
}

func nextAnswer(v *api.Run) string {
	for _, w := range v.Waiting {
		at := string(v.ID) + ":" + w.Step
		answer := wf("answer", at)
		fields := fieldFlags(string(w.Form))
		switch {
		case w.Kind == protocol.WaitTimer:
			continue
		case w.Kind == protocol.WaitSignal:
			return wf("answer", string(v.ID), "--signal", w.Question)
		case w.Kind == protocol.WaitApproval: // whether to allow it is for the user to say
			return wf("answer", at, "--choice", "allow") + ", or: " + answer + ` "deny WHY"; ` + wf("show", string(v.ID)) + " has all of the call"
		case len(w.Form) > 0 && fields == "": // it asks for each field
			return answer
		case len(w.Choices) > 0:
			pick := max(0, slices.IndexFunc(w.Choices, func(c protocol.Choice) bool { return c.Primary }))
			answer += " --choice " + protocol.ShellWord(w.Choices[pick].Value)
		case fields == "":
			answer += ` "…"`
		}
		return strings.TrimSpace(answer + " " + fields)
	}
	return wf("resume", string(v.ID))
}

// ResumeCommand is the command that goes on with a run that no process drives: a sub-workflow goes on
// with the run that it is a part of, unless it closes.
func ResumeCommand(v *api.Run) string {
	run := v.ID
	if v.Info.Parent != nil && v.Info.ForkedFrom == nil && v.Closing == "" {
		run = v.Info.Parent.Run
	}
	return wf("resume", string(run))
}

// WaitsFor says what a run waits for, to follow "waits".
func WaitsFor(v *api.Run) string {
	if len(v.Waiting) == 0 {
		return ""
	}
	switch w := v.Waiting[0]; w.Kind {
	case protocol.WaitTimer:
		return " for its timer"
	case protocol.WaitSignal:
		return " for the signal " + w.Question
	default:
		return ": " + w.Step + ` asks "` + question(w.Question, 100) + `"`
	}
}

// fieldFlags are the flags of wf answer that fill in a form: those that are required, or,
// where there is none such, the first, each with its default or another value that the form takes. It is "" where no such
// values are known: then wf answer asks for them.
func fieldFlags(form string) string {
	fields := protocol.FormFields(form)
	wanted := slices.DeleteFunc(slices.Clone(fields), func(f protocol.FormField) bool { return !f.Required })
	if len(wanted) == 0 && len(fields) > 0 {
		wanted = fields[:1]
	}
	var flags []string
	for _, f := range wanted {
		value, ok := example(f, form)
		if !ok {
			return ""
		}
		flags = append(flags, "--field "+protocol.ShellWord(f.Name+"="+value))
	}
	return strings.Join(flags, " ")
}

// examples are tried where the plainest value of a type is none that a form takes.
var examples = []string{"……", "………", "…………", "……………", "…………………………", "………………………………………………", "a", "abc", "0", "10", "100", "1000", "2026-01-31", "12:00:00Z",
	"2026-01-31T12:00:00Z", "ada@example.org", "https://example.org", `["…"]`, "[1]"}

// example is a value of a field as wf answer reads it that the form takes.
func example(f protocol.FormField, form string) (string, bool) {
	for _, text := range append([]string{f.Example()}, examples...) {
		data, err := protocol.CanonicalJSON(map[string]any{f.Name: f.Read(text)})
		if err != nil {
			continue
		}
		at := FieldPointer(f.Name)
		if !slices.ContainsFunc(frontmatter.Validate(data, form), func(v frontmatter.Violation) bool {
			return v.Pointer == at || strings.HasPrefix(v.Pointer, at+"/")
		}) {
			return text, true
		}
	}
	return "", false
}

// FieldPointer is the place of a field in what was filled in, as validation names it.
func FieldPointer(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// A State is the state of a run for people: its status, or why no process drives it.
type State struct {
	Status  protocol.RunStatus
	Idle    api.Idle
	Closing protocol.RunStatus // what it ends as, while its always roles run
	Lacks   []string           // what a worker must have that goes on with it
}

// StateOf is the state of a run.
func StateOf(v *api.Run) State { return State{v.Status, v.Idle, v.Closing, v.Lacks} }

// Word is the state in a word or two.
func (s State) Word() string {
	switch s.Idle {
	case api.NotStarted:
		return "not started"
	case "", api.Unattended:
		if s.Closing != "" && s.Status == protocol.Running {
			return "closing"
		}
		return string(s.Status)
	}
	return string(s.Idle)
}

// Sign stands in front of a run.
func (s State) Sign(p Paint) string { return p.sign(s.Word()) }

// Why says why no process drives a run, "" for all others.
func (s State) Why() string {
	if len(s.Lacks) > 0 {
		return "it waits for " + Lacked(s.Lacks)
	}
	switch s.Idle {
	case api.Interrupted:
		if s.Closing != "" {
			return "it was to end as " + string(s.Closing) + ", and no process drives its always roles: the last one was killed or could not go on"
		}
		return "no process drives the run: the last one was killed or could not go on. What is recorded is not lost"
	case api.NotStarted:
		return "no process has driven the run yet"
	case api.Unattended:
		return "no process waits for its turn"
	case api.Answered:
		return "the answer is recorded, and no process goes on with the run"
	}
	return ""
}

// AtRest names the open steps of a run that no process drives for what they are.
func AtRest(v *api.Run) {
	if v.Idle == "" {
		return
	}
	for _, s := range v.Steps {
		if s.Status == "running" {
			s.Status = string(api.Interrupted)
		}
	}
}
