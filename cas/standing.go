package cas

import (
	"slices"

	"wf/protocol"
)

// The lengths of the ids of runs, of 5 bits a character.
const (
	IDLength = 10 // in a directory
	LongID   = 16 // in a store that several machines share
)

// IDLength is how many characters the ids of new runs have.
func (s *Store) IDLength() int { return IDLength }

// A Standing says where a run is behind a batch, for stores in which several processes look for runs to drive: so they
// find those that are due without a look at any journal. It follows from the events of the run, and is written with them.
// A directory, whose daemon reads the journals, ignores it.
type Standing struct {
	Run protocol.RunID
	// State is the status of the run; "" leaves what is known of it, and has the run driven once more: see Wake.
	State protocol.RunStatus
	// Due is when the run is to be driven without anything else happening to it: unix µs by the clock of the store, DueNow,
	// DueSoon, or 0 for never.
	Due      int64
	Workflow string // its name
	// Parent is the run that a sub-workflow is driven with; "" for one that is driven by itself.
	Parent protocol.RunID
	// Needs are what a process must have to drive the run, as "place:…": see engine.Place. They hold neither commas nor blanks.
	Needs []string
	// Home is what a process has that is on the machine of the run's files, as "place:…": one that has not may drive the run where no
	// such process is there. "" is none.
	Home string
	// At is the newest event that this follows from, where the batch itself moves the run no further: then nothing is
	// written, with an error wrapping protocol.ErrHeadMoved, once the run has gone on.
	At protocol.Link
}

// Times at which a run is due, by the clock of the store.
const (
	DueNow  = 1 // at once
	DueSoon = 2 // in a moment, so that the process that has begun the run comes first
)

// Wake has a run driven once more, whatever it waits for: something that is no event of it is news for it.
func Wake(run protocol.RunID) Standing { return Standing{Run: run} }

// Same reports whether two say the same of one run, wherever they follow from.
func (x Standing) Same(y Standing) bool {
	return x.Run == y.Run && x.State == y.State && x.Workflow == y.Workflow && x.Due == y.Due && x.Parent == y.Parent && x.Home == y.Home && slices.Equal(x.Needs, y.Needs)
}

// A RunCount is how many runs are in one state, those of sub-workflows aside.
type RunCount struct {
	Workflow string
	State    protocol.RunStatus
	Runs     int
	Moved    int64 // when the one had its last event that moved least lately, unix µs; 0 where they have ended
}
