package protocol

import "fmt"

// Report is what a verification found: wf.verify/v1. It is ok when there are no findings; what
// could not be checked is listed under not_proven and is no failure.
type Report struct {
	Schema    string    `json:"schema"`
	OK        bool      `json:"ok"`
	Checked   Checked   `json:"checked"`
	Findings  []Finding `json:"findings"`
	NotProven []string  `json:"not_proven"`
}

// Checked counts what was read.
type Checked struct {
	Heads   int   `json:"heads"`
	Events  int64 `json:"events"`
	Records int64 `json:"records"`
	Blocks  int64 `json:"blocks"`
	Bytes   int64 `json:"bytes"` // of blocks, unpacked
	Moves   int64 `json:"moves"` // reflog lines
}

// Finding is one fault. Where is run/seq/field, as far as each is known; for what is not part of
// a run it is a place in the store or archive.
type Finding struct {
	Kind     string `json:"kind"`
	Where    string `json:"where"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
	Fix      string `json:"fix"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: want %s, have %s", f.Where, f.Kind, f.Expected, f.Actual)
}

// Err is nil for a clean report, else an error wrapping ErrVerify that gives the
// first finding.
func (r Report) Err() error {
	switch n := len(r.Findings); n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s: %w", r.Findings[0], ErrVerify)
	default:
		return fmt.Errorf("%s (and %d more): %w", r.Findings[0], n-1, ErrVerify)
	}
}
