package lang

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"wf/engine/lint"
	"wf/engine/yaml"
)

// Severities of a Diagnostic.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// severityOf a code: from WF500 on they are of warnings.
func severityOf(code string) string {
	if code >= "WF500" {
		return SeverityWarning
	}
	return SeverityError
}

// Pos is a place in a file: line and column from 1, columns in runes.
type Pos = yaml.Pos

// Range is a stretch of a file; End is exclusive.
type Range struct {
	Start Pos `json:"start"`
	End   Pos `json:"end"`
}

// Fix is a repair that an editor can apply: Replace takes the place of the Range.
type Fix struct {
	Replace string `json:"replace"`
}

// Diagnostic is something wrong with a file, or a warning.
type Diagnostic struct {
	Code     string `json:"code"`     // WF010 …; a number is never reused
	Severity string `json:"severity"` // error or warning
	File     string `json:"file"`
	Range    Range  `json:"range"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"` // what to do, or ""
	Fix      *Fix   `json:"fix,omitempty"`  // or nil

	line string // the source line, where File is a sub-workflow
}

// DiagSchema names the JSON form of a Diagnostic.
const DiagSchema = "wf.diag/v1"

// MarshalJSON writes wf.diag/v1.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	type fields Diagnostic
	return json.Marshal(struct {
		Schema string `json:"schema"`
		fields
	}{DiagSchema, fields(d)})
}

// HasErrors reports whether one of ds is more than a warning.
func HasErrors(ds []Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == SeverityError })
}

// tidy sorts by place and drops repetitions. The file of o comes first, those of its
// sub-workflows after it.
func tidy(ds []Diagnostic, file string) []Diagnostic {
	other := func(d Diagnostic) int {
		if d.File == file {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(other(a)-other(b), cmp.Compare(a.File, b.File), cmp.Compare(a.Range.Start.Line, b.Range.Start.Line),
			cmp.Compare(a.Range.Start.Col, b.Range.Start.Col), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(ds, func(a, b Diagnostic) bool {
		return a.File == b.File && a.Range.Start == b.Range.Start && a.Code == b.Code && a.Message == b.Message
	})
}

// nearest is the candidate that name was probably meant to be, or "".
func nearest(name string, candidates []string) string { return lint.Nearest(name, candidates, 3) }

// suggest names the candidate that was probably meant in place of the hint, if there is one; in the
// file it then replaces what d is about.
func (d *Diagnostic) suggest(name string, candidates []string) {
	if near := nearest(name, candidates); near != "" {
		d.Hint, d.Fix = fmt.Sprintf("did you mean %q?", near), &Fix{near}
	}
}
