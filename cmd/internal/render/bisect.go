package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"wf/api"
	"wf/protocol"
)

// editsShown is how many edits are listed before mixtures of them are tried.
const editsShown = 40

// TellTrial tells of a trial that has ended; verbose, also of each run that begins.
func (p *Printer) TellTrial(b *api.Bisect, t *api.Trial) {
	what := "edit " + ranges(t.Edits)
	if len(t.Edits) > 1 {
		what = "edits " + ranges(t.Edits)
	}
	if t.Version != nil {
		what = Visible(b.Versions[*t.Version].Name)
	}
	if t.Verdict == "" {
		if p.Verbose {
			p.Progress("  %s: run %s", what, t.Runs[len(t.Runs)-1].Run)
		}
		return
	}
	line := fmt.Sprintf("%3d  %s  %s", len(b.Trials), p.verdict(t.Verdict), what)
	for i, r := range t.Runs {
		if i == 0 {
			line += "  run"
		}
		line += " " + string(r.Run)
	}
	if len(t.Runs) > 0 {
		line += "  " + protocol.Plural(steps(t.Runs), "step") + costOf(t.Runs)
		if !slices.ContainsFunc(t.Runs, func(r api.TrialRun) bool { return !r.Remembered }) {
			line += "  (remembered)"
		}
	}
	if t.Verdict == api.Unresolved || p.Verbose {
		line += "  " + OneLine(t.Why, 160)
	}
	p.Progress("%s", line)
}

func (p *Printer) verdict(v api.Verdict) string {
	text := fmt.Sprintf("%-10s", v)
	switch v {
	case api.Good:
		return p.Err.Green(text)
	case api.Bad:
		return p.Err.Red(text)
	}
	return p.Err.Yellow(text)
}

// TellEdits numbers the edits that mixtures are made of.
func (p *Printer) TellEdits(b *api.Bisect) {
	p.Progress("%s between %s and %s", protocol.Plural(len(b.Edits), "edit"), Visible(b.Versions[b.Good].Name), Visible(b.Versions[b.Bad].Name))
	for i, e := range b.Edits {
		if i == editsShown && !p.Verbose {
			p.Progress("    … and %d more", len(b.Edits)-i)
			return
		}
		p.Progress("%6d  %s", i+1, OneLine(e.Line, 160))
	}
}

// ranges writes places, counted from 1, as 1-3, 7.
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		text := fmt.Sprint(list[i] + 1)
		if k > i {
			text += fmt.Sprintf("-%d", list[k]+1)
		}
		parts = append(parts, text)
		i = k + 1
	}
	if len(parts) > 8 {
		return fmt.Sprintf("%s … (%d)", strings.Join(parts[:8], ", "), len(list))
	}
	return strings.Join(parts, ", ")
}

func steps(runs []api.TrialRun) (n int) {
	for _, r := range runs {
		n += r.Steps
	}
	return n
}

func costOf(runs []api.TrialRun) string {
	sum := 0.0
	for _, r := range runs {
		if r.CostUSD == nil {
			return ""
		}
		sum += *r.CostUSD
	}
	if sum == 0 {
		return ""
	}
	return fmt.Sprintf("  $%.4f", sum)
}

// ShowBisect writes the edits that a bisect found, as diffs, or how far it came.
func (p *Printer) ShowBisect(b *api.Bisect) error {
	var s strings.Builder
	if b.Complete {
		p.showMinimal(&s, b)
	} else {
		s.WriteString("not found yet\n")
	}
	verdicts := map[api.Verdict]int{}
	for _, t := range b.Trials {
		verdicts[t.Verdict]++
	}
	cost := ""
	if b.CostUSD == nil {
		cost = ", of unknown cost"
	} else if *b.CostUSD > 0 {
		cost = fmt.Sprintf(", $%.4f", *b.CostUSD)
	}
	fmt.Fprintf(&s, "%s: %d good, %d bad, %d unresolved; %s with %s%s, %d of them performed now\n", protocol.Plural(len(b.Trials), "trial"), verdicts[api.Good], verdicts[api.Bad], verdicts[api.Unresolved],
		protocol.Plural(b.Runs, "run"), protocol.Plural(b.Steps, "step"), cost, b.Performed)
	_, err := fmt.Fprint(p.Out, s.String())
	return err
}

func (p *Printer) showMinimal(s *strings.Builder, b *api.Bisect) {
	if len(b.Versions) > 2 {
		fmt.Fprintf(s, "%s is the last good version, %s the first bad one", Visible(b.Versions[b.Good].Name), Visible(b.Versions[b.Bad].Name))
		if between := b.Bad - b.Good - 1; between > 0 {
			fmt.Fprintf(s, "; %s between them cannot be told", protocol.Plural(between, "version"))
		}
		s.WriteString("\n")
	}
	if len(b.Minimal) == 1 {
		fmt.Fprintf(s, "%s 1 of %s breaks the check:\n", p.Out.Green("✓"), protocol.Plural(len(b.Edits), "edit"))
	} else {
		fmt.Fprintf(s, "%s %d of %s break the check together:\n", p.Out.Green("✓"), len(b.Minimal), protocol.Plural(len(b.Edits), "edit"))
	}
	for _, i := range b.Minimal {
		e := b.Edits[i]
		fmt.Fprintf(s, "\n%s  %s\n", p.Out.Bold(Visible(e.Key)), e.Kind)
		p.showEdit(s, e)
	}
	s.WriteString("\n")
}

// What of a diff is shown of one edit.
const (
	editLines = 60
	editWidth = 200
)

// showEdit writes how an edit changes a value. Where lines are too long to show where they differ, the line that
// tells of it does.
func (p *Printer) showEdit(s *strings.Builder, e api.Edit) {
	old, now := e.Old, e.New
	if old != "" {
		old += "\n"
	}
	if now != "" {
		now += "\n"
	}
	shown, cut := 0, false
	for line := range strings.Lines(udiff.Unified("good", "bad", old, now)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "--- good") || strings.HasPrefix(line, "+++ bad") || strings.HasPrefix(line, "@@ ") || strings.HasPrefix(line, `\ `) {
			continue
		}
		if shown++; shown > editLines {
			cut = true
			break
		}
		text := Visible(line)
		if r := []rune(text); len(r) > editWidth {
			text, cut = string(r[:editWidth])+"…", true
		}
		switch {
		case strings.HasPrefix(line, "-"):
			text = p.Out.Red(text)
		case strings.HasPrefix(line, "+"):
			text = p.Out.Green(text)
		}
		s.WriteString("  " + text + "\n")
	}
	if cut {
		fmt.Fprintf(s, "  … %s\n", OneLine(e.Line, editWidth))
	}
}
