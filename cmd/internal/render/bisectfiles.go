package render

import (
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/protocol"
)

// TellLook tells of files that were checked; verbose, also when they are laid out.
func (p *Printer) TellLook(b *api.BisectFiles, t *api.LookTrial) {
	what := p.lookPhrase(&t.Look)
	if t.Item != "" {
		what = Visible("up to " + t.Item + " of " + t.Look.Step)
	}
	if t.Verdict == "" {
		if p.Verbose && t.Item == "" {
			p.Progress("  %s: %s", what, t.Look.Tree)
		}
		return
	}
	line := fmt.Sprintf("%3d  %s  %s", len(b.Trials), p.verdict(t.Verdict), what)
	if len(t.Checks) > 0 && !slices.ContainsFunc(t.Checks, func(c api.LookCheck) bool { return !c.Remembered }) {
		line += "  (remembered)"
	}
	if t.Verdict == api.Unresolved || p.Verbose {
		line += "  " + OneLine(Visible(t.Why), 160)
	}
	p.Progress("%s", line)
}

// lookPhrase names a look, so that two of them differ.
func (p *Printer) lookPhrase(l *api.Look) string {
	text := l.Phrase()
	if l.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", l.Attempt)
	}
	if l.Phase == protocol.FilesCall {
		text += fmt.Sprintf(" (event %d)", l.Seq)
	}
	return OneLine(Visible(text), 120)
}

// What an answer shows of the files that differ.
const (
	bisectFilesShown = 20
	bisectLinesShown = 60
)

// ShowBisectFiles writes which step broke a check of files, and how they differ; or how far the search came.
func (p *Printer) ShowBisectFiles(b *api.BisectFiles) error {
	var s strings.Builder
	if b.Complete {
		p.showCulprit(&s, b)
	} else {
		fmt.Fprintf(&s, "not found yet: between %s and %s\n", p.lookPhrase(&b.Good), p.lookPhrase(&b.Bad))
	}
	verdicts := map[api.Verdict]int{}
	for _, t := range b.Trials {
		verdicts[t.Verdict]++
	}
	fmt.Fprintf(&s, "%s of %s: %d good, %d bad, %d unresolved; %s, %d of them performed now\n", protocol.Plural(len(b.Trials), "trial"), protocol.Plural(b.Looks, "look"),
		verdicts[api.Good], verdicts[api.Bad], verdicts[api.Unresolved], protocol.Plural(b.Checks, "check"), b.Performed)
	if _, err := fmt.Fprint(p.Out, s.String()); err != nil {
		return err
	}
	if n := b.LeftOutCount; n > 0 {
		p.Progress("%s that the run has no content of, or that lead out of the directory, were not there for the check: %s", protocol.Plural(n, "path"), OneLine(Visible(strings.Join(b.LeftOut, "; ")), 300))
	}
	if b.Complete {
		p.showMore(b)
	}
	return nil
}

func (p *Printer) showCulprit(s *strings.Builder, b *api.BisectFiles) {
	who := OneLine(Visible(api.OneOf(b.By)), 300)
	good, bad := p.lookPhrase(&b.Good), p.lookPhrase(&b.Bad)
	mark := p.Out.Green("✓")
	switch {
	case b.Untold > 0:
		fmt.Fprintf(s, "%s the check broke between %s and %s; %s between them cannot be told\n", mark, good, bad, protocol.Plural(b.Untold, "look"))
		fmt.Fprintf(s, "  it was %s\n", p.Out.Bold(who))
	case len(b.By) == 1 && who == api.Outside:
		fmt.Fprintf(s, "%s a change from %s broke the check, between %s and %s\n", mark, p.Out.Bold(who), good, bad)
	case b.Merge != "":
		fmt.Fprintf(s, "%s %s broke the check, when %s took over its changes\n", mark, p.Out.Bold(who), OneLine(Visible(b.Merge), 80))
	case b.Tool != "":
		fmt.Fprintf(s, "%s %s broke the check: its call of %s (event %d)\n", mark, p.Out.Bold(who), p.Out.Bold(OneLine(Visible(b.Tool), 80)), b.Bad.Seq)
	case len(b.By) == 1:
		fmt.Fprintf(s, "%s %s broke the check\n", mark, p.Out.Bold(who))
	default:
		fmt.Fprintf(s, "%s %s broke the check, between %s and %s; which of them cannot be told\n", mark, p.Out.Bold(who), good, bad)
	}
	s.WriteString("\n")
	rows := make([][]string, 0, len(b.Diff.Files))
	for i, f := range b.Diff.Files {
		if i == bisectFilesShown {
			rows = append(rows, []string{" ", fmt.Sprintf("and %d more", len(b.Diff.Files)-i)})
			break
		}
		rows = append(rows, p.fileDiffRow(&f))
	}
	_ = Table(s, rows) // a Builder takes all
	left := bisectLinesShown
	for _, f := range b.Diff.Files {
		if f.Unified == "" || left <= 0 {
			continue
		}
		s.WriteString("\n")
		left -= p.unified(s, f.Unified, left)
	}
	s.WriteString("\n")
}

// showMore names the commands that show more. One whose words could not be pasted is not named.
func (p *Printer) showMore(b *api.BisectFiles) {
	run := string(b.Run)
	more := func(label, format string, args ...any) bool {
		line := fmt.Sprintf(format, args...)
		if Visible(line) != line || strings.Contains(line, "\n") {
			return false
		}
		p.Progress("%-6s %s", label, line)
		return true
	}
	if len(b.By) == 1 && b.By[0] != api.Outside {
		more("more", "wf diff %s --files", protocol.ShellWord(run+":"+b.By[0]))
	}
	for _, f := range b.Diff.Files {
		if f.Unified != "" && more("lines", "wf blame %s --run %s", protocol.ShellWord(f.Path), run) {
			break
		}
	}
	more("before", "%s", b.Good.LayOut(b.Run))
	if b.Child != "" {
		more("within", "wf bisect %s --check %s", b.Child, protocol.ShellWord(b.Check))
	}
}
