package engine

import (
	"strings"

	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
)

// Candidate is a run that is about to begin, to be forked, or to be driven.
type Candidate struct {
	Program   *lang.Program
	File      string              // path of the YAML, absolute
	Workspace string              // absolute
	Models    map[string][]string // override of the models by role, "" is every role
	Limits    protocol.Limits     // as they will hold, raised ones included
	New       bool                // nothing of it was performed yet
	Later     bool                // of a new one: it is asked for again when it begins, and nothing is made ready before
	Fork      bool                // of Run
	Run       protocol.RunID      // "" for a new one
}

// ModelsOf are what an agent tries in order: the override, else the role's own.
func (c Candidate) ModelsOf(role *protocol.Role) []string {
	return rules.Models(c.Models, role)
}

// admit asks Admit, if there is one.
func (e *Engine) admit(c Candidate) error {
	if e.Admit == nil {
		return nil
	}
	return e.Admit(c)
}

// Fits is nil if a run could begin, as far as that is known without the store: its inputs hold no secret, no row of notifications
// is too long, and Admit lets it. Nothing is written.
func (e *Engine) Fits(l Launch) error { return e.fits(l, true) }

func (e *Engine) fits(l Launch, later bool) error {
	if err := l.CausedBy.Allowed(); err != nil {
		return err
	}
	if err := openInputs(l.Program, l.Inputs, l.AllowSecretInputs); err != nil {
		return err
	}
	return e.admit(Candidate{Program: l.Program, File: l.File, Workspace: l.Workspace, Models: l.Models, Limits: l.Program.Workflow.Limits, New: true, Later: later})
}

// MayDrive reports whether a run may be driven: nil, or the error with which Drive would refuse it before it writes anything.
func (e *Engine) MayDrive(run protocol.RunID, s *rules.State, o DriveOptions) error {
	err := e.mayDriveIn(run, s, s.Info.Workspace, o.Limits)
	if err == nil && !o.Move && e.elsewhere(s) && parentOf(s) == nil && !s.Status().Final() {
		err = errElsewhere(run, s)
	}
	return err
}

// mayDriveIn is MayDrive for a run that is about to work in another directory.
func (e *Engine) mayDriveIn(run protocol.RunID, s *rules.State, dir string, raised []protocol.LimitChanged) error {
	if s.Info.Parent != nil && !s.Info.Forked.Defined() || s.Status().Final() {
		return nil // Admit was asked for the run that has the sub-workflow
	}
	if lacks := protocol.Lacking(s.Program().WorkerNeeds(), e.Has); len(lacks) > 0 {
		return protocol.ErrLacks.With("", "run %s waits for a worker that has %s", run, strings.Join(lacks, ", "))
	}
	limits := s.Limits
	for _, l := range raised {
		limits = rules.Raised(limits, l)
	}
	return e.admit(Candidate{Program: s.Program(), File: s.Info.File, Workspace: dir, Models: s.Info.Models, Limits: limits, Run: run})
}
