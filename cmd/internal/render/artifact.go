package render

import (
	"fmt"

	"wf/api"
	"wf/protocol"
)

// Artifacts are the files that a run, or a step of it, keeps, with those of its sub-workflows: wf.artifacts/v1.
type Artifacts struct {
	Schema    string         `json:"schema"`
	Run       protocol.RunID `json:"run"`
	Artifacts []Artifact     `json:"artifacts"`
}

// Artifact is a file that a step keeps, or that it left out.
type Artifact struct {
	Run protocol.RunID `json:"run,omitempty"` // of the sub-workflow whose step it is
	api.Artifact
}

// Fetched is what wf artifact --to wrote: wf.fetched/v1.
type Fetched struct {
	Schema  string         `json:"schema"`
	Run     protocol.RunID `json:"run"`
	To      string         `json:"to"`
	Files   int            `json:"files"`
	Bytes   int64          `json:"bytes"`
	Skipped []string       `json:"skipped,omitempty"`
}

// NewFetched says what was written.
func NewFetched(run protocol.RunID, to string, files int, bytes int64, skipped []string) Fetched {
	return Fetched{"wf.fetched/v1", run, to, files, bytes, skipped}
}

// keptMost is how many files of a run a screen shows beside its steps.
const keptMost = 10

// ShowArtifacts lists all of them.
func (p *Printer) ShowArtifacts(list *Artifacts) error {
	if len(list.Artifacts) == 0 {
		_, err := fmt.Fprintln(p.Out, "no files are kept")
		return err
	}
	return p.artifactTable("", list.Artifacts)
}

// ShowKept lists the first of them, below what else is shown of a run.
func (p *Printer) ShowKept(list *Artifacts) error {
	fmt.Fprintln(p.Out, "  "+p.Out.Dim("artifacts"))
	n := len(list.Artifacts)
	if err := p.artifactTable("    ", list.Artifacts[:min(n, keptMost)]); err != nil || n <= keptMost {
		return err
	}
	_, err := fmt.Fprintf(p.Out, "    and %d more: %s\n", n-keptMost, p.Commands(wf("artifact", string(list.Run))))
	return err
}

func (p *Printer) artifactTable(indent string, list []Artifact) error {
	rows := make([][]string, 0, len(list))
	for _, x := range list {
		what := ""
		if x.Why != "" {
			what = "not kept: " + artifactWhy[x.Why]
		} else if x.Mode == "link" {
			what = "link"
		}
		step := x.Step
		if x.Run != "" {
			step = string(x.Run) + ":" + step
		}
		rows = append(rows, []string{indent + step, Size(x.Size), OneLine(Visible(x.Path), 200), what})
	}
	return Table(p.Out, rows)
}

var artifactWhy = map[string]string{
	"name": "its name is not UTF-8", "special": "a socket, pipe or device", "size": "it is larger than a file may be", "secret": "it holds a secret, or what has the shape of one",
	"unstable": "it changed each time it was read", "denied": "it may not be read",
}

// Size is a number of bytes for people.
func Size(n int64) string {
	for i, unit := range []string{"GB", "MB", "kB"} {
		if by := int64(1) << (30 - 10*i); n >= by {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(by), unit)
		}
	}
	return fmt.Sprintf("%d B", n)
}
