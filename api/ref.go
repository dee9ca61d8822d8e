package api

import (
	"strconv"
	"strings"

	"wf/protocol"
	"wf/protocol/lazy"
)

// A Ref names a run, a step of a run, or a block. As users write it:
//
//	7K3Q8F2M1A    a run; any unique beginning of it will do
//	-1            the run that moved last, -2 the one before; in the user's own store of this directory
//	-1:coder#2    a step
//	bafyrei…      a block; 6 characters after bafyrei or bafkrei will do, as screens show 8
type Ref struct {
	Run   protocol.RunID
	Step  string        // "" is the whole run
	Block protocol.Link // where a block is meant, Run is then ""
}

func (r Ref) String() string {
	switch {
	case r.Block.Defined():
		return r.Block.String()
	case r.Step != "":
		return string(r.Run) + ":" + r.Step
	}
	return string(r.Run)
}

// MustBeRun is an error of the command line where text, which r was read from, names something else.
func (r Ref) MustBeRun(text string) error {
	switch {
	case r.Block.Defined():
		return protocol.ErrUsage.With("", "%s is a block, a run is wanted; wf ls lists the runs", text)
	case r.Step != "":
		return protocol.ErrUsage.With("", "%s is a step, a run is wanted: %s", text, r.Run)
	}
	return nil
}

// MustBeStep is an error of the command line where text, which r was read from, names something else.
func (r Ref) MustBeStep(text string) error {
	if r.Block.Defined() || r.Step == "" {
		return protocol.ErrUsage.With("", "%s names no step; a step is named as in -1:coder#2, and wf show -1 lists them", text)
	}
	return nil
}

// Latest matches -1 and -2, the runs that moved last.
var Latest = lazy.Regexp(`^-[0-9]+$`)

// A Written is a reference as it is written, before it is looked up.
type Written struct {
	Name   string // of the run or block; -1 for the latest
	Step   string // "" where none is written
	Latest int    // n of -n, else 0
}

// ReadRef takes a reference apart. An error wraps protocol.ErrUsage.
func ReadRef(text string) (w Written, err error) {
	var isStep bool
	w.Name, w.Step, isStep = strings.Cut(text, ":")
	if isStep {
		id, err := protocol.ParseStepID(w.Step)
		if err != nil {
			return w, protocol.ErrUsage.With("", "%v; a step is named as in -1:coder#2", err)
		}
		w.Step = id.String()
	}
	if Latest().MatchString(w.Name) {
		if w.Latest, err = strconv.Atoi(w.Name[1:]); err != nil || w.Latest < 1 {
			return w, protocol.ErrUsage.With("", "%s: the latest run is -1", w.Name)
		}
	}
	return w, nil
}

// Named are the runs that a name means: the one of that id, else those whose ids begin with it, whatever its case.
func Named(runs []protocol.RunID, name string) (found []protocol.RunID) {
	for _, run := range runs {
		switch id := string(run); {
		case name == "":
		case id == name:
			return []protocol.RunID{run}
		case len(id) >= len(name) && strings.EqualFold(id[:len(name)], name):
			found = append(found, run)
		}
	}
	return found
}

// MostNamed is how many things an error lists that a reference fits.
const MostNamed = 10

// Ambiguous is the error of a reference that fits several things.
func Ambiguous(text string, found []string) error {
	n := len(found)
	if n > MostNamed {
		found = append(found[:MostNamed:MostNamed], "…")
	}
	return protocol.ErrAmbiguous.With("", "%q fits %d things: %s", text, n, strings.Join(found, ", "))
}
