package help

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
)

// Columns is the width of a page at most, and where there is no terminal.
const Columns = 100

const described = 24 // columns that a description needs at least beside a name

// Page is the help page of a command: what it does, its usage, examples, commands in their groups, and
// flags with their defaults. Of the flags that all commands have, pages below the first show only -o, because
// the own flags of a command would be hard to find among them. The width is that of the terminal in
// columns, 0 where there is none.
func Page(cmd *cobra.Command, paint render.Paint, width int) string {
	p := page{paint: paint, width: Columns}
	if width > 0 {
		p.width = min(width, Columns)
	}
	return p.of(cmd)
}

// A page is the help of a command as it is written, for a width in columns.
type page struct {
	strings.Builder
	paint render.Paint
	width int
}

func (p *page) of(cmd *cobra.Command) string {
	p.line(0, "")
	p.text(cmp.Or(cmd.Long, cmd.Short))
	p.heading("Usage")
	p.line(4, p.usage(cmd))
	p.line(0, "")
	if cmd.Example != "" {
		p.heading("Examples")
		p.examples(cmd.Example)
		p.line(0, "")
	}
	p.commands(cmd)
	p.heading("Flags")
	p.rows(flagRows(cmd))
	p.line(0, "")
	if cmd.HasParent() {
		p.paragraph("Every command has --store, --hub, -q, -v and more: wf --help")
	}
	return p.String()
}

func (p *page) line(indent int, s string) {
	p.WriteString(strings.TrimRight(strings.Repeat(" ", indent)+s, " ") + "\n")
}

func (p *page) heading(title string) {
	p.line(2, p.paint.Bold(strings.ToUpper(title)))
	p.line(0, "")
}

// text writes paragraphs, broken into lines for the width. A line that begins with a space stays as it is.
func (p *page) text(text string) {
	paragraph := ""
	for line := range strings.SplitSeq(text+"\n", "\n") {
		if line != "" && line[0] != ' ' {
			paragraph += " " + line
			continue
		}
		p.paragraph(paragraph)
		paragraph = ""
		p.line(2, line)
	}
}

func (p *page) paragraph(text string) {
	for _, l := range wrapWords(text, p.width-2) {
		p.line(2, l)
	}
}

func (p *page) usage(cmd *cobra.Command) string {
	operands, _ := strings.CutSuffix(strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath()), " [flags]")
	if cmd.HasAvailableSubCommands() {
		operands += " [command]"
	}
	return p.paint.Cyan(cmd.CommandPath()) + operands + " [--flags]"
}

// examples writes commands as they are typed, whatever their width, and comments.
func (p *page) examples(examples string) {
	for line := range strings.SplitSeq(examples, "\n") {
		line = strings.TrimPrefix(line, "  ")
		if strings.HasPrefix(line, "#") {
			line = p.paint.Dim(line)
		}
		p.line(4, line)
	}
}

// commands writes the commands below one and the topics, those without a group first.
func (p *page) commands(cmd *cobra.Command) {
	in := map[string][]row{}
	width := 0
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			row := commandRow(sub)
			in[sub.GroupID] = append(in[sub.GroupID], row)
			width = max(width, row.width())
		}
	}
	for _, g := range append([]*cobra.Group{{Title: "Commands"}}, cmd.Groups()...) {
		if len(in[g.ID]) > 0 {
			p.heading(g.Title)
			p.rows(in[g.ID], width)
			p.line(0, "")
		}
	}
}

// A row is a command or a flag in a list: its name, what follows it, and what it does.
type row struct{ name, operands, does string }

func (r row) width() int { return plain.Width(r.name + r.operands) }

// rows writes names of at most a width with what they do beside them, or below where the page is too narrow.
func (p *page) rows(rows []row, width int) {
	column := 4 + width + 2
	beside := p.width-column >= described
	if !beside {
		column = 8
	}
	for _, r := range rows {
		head, lines := p.paint.Cyan(r.name)+r.operands, wrapWords(r.does, p.width-column)
		if beside && len(lines) > 0 {
			head, lines = head+strings.Repeat(" ", column-4-r.width())+lines[0], lines[1:]
		}
		p.line(4, head)
		for _, l := range lines {
			p.line(column, l)
		}
	}
}

func commandRow(cmd *cobra.Command) row {
	operands := strings.TrimPrefix(cmd.Use, cmd.Name())
	if cmd.HasAvailableSubCommands() {
		operands += " [command]"
	}
	own := false
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { own = own || !f.Hidden && f.Name != "help" })
	if own {
		operands += " [--flags]"
	}
	return row{cmd.Name(), operands, cmd.Short}
}

// flagRows are the flags on the page of a command, and the width of the widest name.
func flagRows(cmd *cobra.Command) (rows []row, width int) {
	everywhere := cmd.Root().PersistentFlags()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || cmd.HasParent() && f.Name != "output" && everywhere.Lookup(f.Name) == f {
			return
		}
		row := row{name: "--" + f.Name, does: upperFirst(f.Usage)}
		if f.Shorthand != "" {
			row.name = "-" + f.Shorthand + " " + row.name
		}
		if !slices.Contains([]string{"", "false", "0", "[]"}, f.DefValue) {
			row.does += " (" + f.DefValue + ")"
		}
		rows, width = append(rows, row), max(width, row.width())
	})
	return rows, width
}

// wrapWords breaks a text between words into lines of a width; a word that is wider has a line of its own.
func wrapWords(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && plain.Width(lines[last])+1+plain.Width(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
