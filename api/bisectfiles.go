package api

import "wf/protocol"

// BisectFilesSchema names the JSON form of a BisectFiles.
const BisectFilesSchema = "wf.bisectfiles/v1"

// BisectFiles is wf.bisectfiles/v1: behind which step of a run its files fail a check, and the trials that showed it.
type BisectFiles struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	Check  string         `json:"check"` // the command
	Looks  int            `json:"looks"` // of the run between both ends, these included, at which the files were others than before
	Good   Look           `json:"good"`  // the last one that was found good
	Bad    Look           `json:"bad"`   // the first one that was found bad
	// Complete is false where the search was interrupted, or reached its limit.
	Complete bool `json:"complete"`
	// Untold is how many looks between Good and Bad can be told to be neither; the first 100 of them are Between.
	Untold  int    `json:"untold"`
	Between []Look `json:"between,omitempty"`
	// By are the visits that may have changed what differs between Good and Bad, and "outside"; one of several where they acted at the same
	// time, or where looks between cannot be told.
	By   []string `json:"by"`
	Call string   `json:"call,omitempty"` // of By, behind which the files are bad; left out where it is not known
	Tool string   `json:"tool,omitempty"` // of the call
	// Merge is the visit that took over what By changed in own copies of the workspace; left out where they worked in the workspace.
	Merge string `json:"merge,omitempty"`
	// Child is the run of the sub-workflow where that is the only step of By; left out where it is none.
	Child protocol.RunID `json:"child,omitempty"`
	Diff  *FilesDiff     `json:"diff,omitempty"` // between Good and Bad; left out before Complete
	// Trials are in their order.
	Trials    []LookTrial `json:"trials"`
	Checks    int         `json:"checks"`    // of all trials
	Performed int         `json:"performed"` // of this call; the others were performed before
	// LeftOut is what the check did not find, for it was not recorded or leads out of the directory, each with why: the first 100 paths of
	// LeftOutCount. Files that are ignored are not counted.
	LeftOut      []string `json:"left_out,omitempty"`
	LeftOutCount int      `json:"left_out_count,omitempty"`
}

// LookTrial are the files of a look that were checked.
type LookTrial struct {
	Look    Look        `json:"look"`
	Item    string      `json:"item,omitempty"` // the visit up to which a merge was laid out; left out where it was not taken apart
	Verdict Verdict     `json:"verdict"`
	Why     string      `json:"why,omitempty"` // it is that
	Checks  []LookCheck `json:"checks,omitempty"`
}

// LookCheck is what one check said.
type LookCheck struct {
	Verdict    Verdict `json:"verdict"`
	Exit       *int    `json:"exit,omitempty"`
	Remembered bool    `json:"remembered,omitempty"` // of an earlier call
}

// Phrase names a look in words.
func (l *Look) Phrase() string {
	switch l.Phase {
	case LookStart:
		return "the start of the run"
	case protocol.FilesBefore:
		return "before " + l.Step
	case protocol.FilesCall:
		if l.Tool != "" {
			return l.Step + ", after " + l.Tool
		}
		return l.Step + ", after a tool call"
	}
	return l.Step
}
