package render

import (
	"fmt"
	"io"
	"math"
	"strings"

	"wf/api"
	"wf/protocol"
)

// ShowStepFiles lists the files of a look.
func (p *Printer) ShowStepFiles(list *api.StepFiles) error {
	if len(list.Files) == 0 {
		_, err := fmt.Fprintln(p.Out, "no files")
		return err
	}
	rows := make([][]string, 0, len(list.Files))
	for _, f := range list.Files {
		what := strings.Join(f.By, ", ")
		if f.Why != "" {
			what = both("not recorded: "+artifactWhy[f.Why], what)
		} else if f.Mode != "file" {
			what = both(f.Mode, what)
		}
		rows = append(rows, []string{p.changeMark(f.Change), Size(f.Size), OneLine(Visible(f.Path), 200), Visible(what)})
	}
	return Table(p.Out, rows)
}

func (p *Printer) changeMark(change string) string {
	switch change {
	case "added":
		return p.Out.Green("+")
	case "changed":
		return p.Out.Yellow("~")
	case "removed":
		return p.Out.Red("−")
	}
	return " "
}

// diffNotes are why a file that differs has no text.
var diffNotes = map[string]string{"binary": "binary", "large": "too large to compare by lines", "omitted": "not recorded", "cut": "left out: the answer is long enough", "mode": "only its mode"}

// ShowFilesDiff writes in what files differ: how much of each, then the lines.
func (p *Printer) ShowFilesDiff(d *api.FilesDiff) error {
	if d.Equal {
		_, err := fmt.Fprintln(p.Out, p.Out.Green("✓")+" the files are the same")
		return err
	}
	rows := make([][]string, 0, len(d.Files))
	for _, f := range d.Files {
		rows = append(rows, p.fileDiffRow(&f))
	}
	if err := Table(p.Out, rows); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "%s, +%d −%d\n", protocol.Plural(len(d.Files), "file"), d.Added, d.Removed)
	for _, f := range d.Files {
		if f.Note == "cut" {
			fmt.Fprintf(p.Out, "\n%s: %s\n", OneLine(Visible(f.Path), 200), diffNotes["cut"])
		}
		if f.Unified != "" {
			fmt.Fprintln(p.Out)
			p.unified(p.Out, f.Unified, math.MaxInt)
		}
	}
	return nil
}

// fileDiffRow is the row of a file that differs in a table.
func (p *Printer) fileDiffRow(f *api.FileDiff) []string {
	what := fmt.Sprintf("+%d −%d", f.Added, f.Removed)
	if f.Note != "" && f.Note != "cut" {
		what = diffNotes[f.Note]
	}
	if f.Before != nil && f.After != nil && f.Before.Mode != f.After.Mode {
		what += ", " + f.Before.Mode + " → " + f.After.Mode
	}
	return []string{p.changeMark(f.Change), OneLine(Visible(f.Path), 200), what, Visible(strings.Join(f.By, ", "))}
}

// unified writes the first lines of a diff with its colours, and says so where there are more.
func (p *Printer) unified(w io.Writer, text string, most int) (lines int) {
	within := false
	for line := range strings.Lines(Visible(text)) {
		if lines++; lines > most {
			fmt.Fprintln(w, p.Out.Dim("…"))
			break
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@"):
			within = true
			line = p.Out.Dim(line)
		case !within:
			line = p.Out.Bold(line)
		case strings.HasPrefix(line, "+"):
			line = p.Out.Green(line)
		case strings.HasPrefix(line, "-"):
			line = p.Out.Red(line)
		}
		fmt.Fprintln(w, line)
	}
	return lines
}

// restoredMost is how many paths a screen shows of those that changed.
const restoredMost = 20

// ShowRestored tells what became of the files of a workspace, or what would.
func (p *Printer) ShowRestored(v *api.FilesRestored, dryRun bool) error {
	list := v.Changed
	if !p.Verbose && len(list) > restoredMost {
		list = list[:restoredMost]
	}
	for _, path := range list {
		fmt.Fprintf(p.Out, "%s %s\n", p.Out.Yellow("~"), OneLine(Visible(path), 200))
	}
	if more := len(v.Changed) - len(list); more > 0 {
		fmt.Fprintf(p.Out, "  and %d more\n", more)
	}
	for _, c := range v.Conflicts {
		fmt.Fprintf(p.Out, "%s %s: %s\n", p.Out.Red("!"), OneLine(Visible(c.Path), 200), Visible(c.Why))
	}
	left := ""
	if n := len(v.Conflicts); n > 0 {
		left = fmt.Sprintf(", %d left alone", n)
	}
	var err error
	switch {
	case dryRun:
		_, err = fmt.Fprintf(p.Out, "%s would change%s\n", protocol.Plural(len(v.Changed), "path"), left)
	case v.State == api.RestorePlanned:
		_, err = fmt.Fprintf(p.Out, "nothing was changed%s\n", left)
	default:
		_, err = fmt.Fprintf(p.Out, "%s changed in %s%s\n", protocol.Plural(len(v.Changed), "path"), Visible(v.Workspace), left)
	}
	if n := len(v.Kept); n > 0 && !dryRun {
		p.Progress("%s that nothing had recorded: kept", protocol.Plural(n, "path"))
	}
	if v.Next != "" {
		p.Progress("the conversation goes on with the files: wf chat %s", v.Next)
	}
	if v.State == protocol.RestoreDone {
		p.Progress("undo   wf restore %s --tree %s", v.Run, v.Undo)
	}
	return err
}

// ShowBlame writes lines with where they came from.
func (p *Printer) ShowBlame(b *api.Blame) error {
	by := make([]string, len(b.Lines))
	width := 0
	for i, l := range b.Lines {
		by[i] = OneLine(Visible(strings.TrimSpace(api.OneOf(l.By)+" "+l.Tool)), 40)
		width = max(width, len([]rune(by[i])))
	}
	for i, l := range b.Lines {
		if _, err := fmt.Fprintf(p.Out, "%s%s  %5d  %s\n", p.Out.Dim(by[i]), strings.Repeat(" ", width-len([]rune(by[i]))), l.Line, Visible(l.Text)); err != nil {
			return err
		}
	}
	return nil
}

// ShowCommit tells which steps wrote what was committed, or would be.
func (p *Printer) ShowCommit(c *api.Commit) error {
	users, untold := 0, 0
	for _, x := range c.Paths {
		switch {
		case x.Why != "":
			untold++
			p.Progress("%s: %s", OneLine(Visible(x.Path), 200), Visible(x.Why))
		case len(x.By) == 0:
			users++
		}
	}
	for _, t := range c.Trailers {
		fmt.Fprintf(p.Out, "%s\n", Visible(t))
	}
	line := protocol.Plural(len(c.Paths), "path")
	if users > 0 {
		line += fmt.Sprintf(", %d that no run wrote", users)
	}
	if untold > 0 {
		line += fmt.Sprintf(", %d of which it cannot be told", untold)
	}
	if c.Commit != "" {
		line += "; commit " + c.Commit[:min(len(c.Commit), 12)]
	} else {
		line += " staged"
	}
	_, err := fmt.Fprintln(p.Out, line)
	return err
}
