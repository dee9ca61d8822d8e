package help

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Manual is what the pages of the manual say beside what the commands say of themselves.
type Manual struct {
	Version string // of the program
	Date    string // of the pages, as 2026-01-31; "" is none
	Exits   []ExitStatus
}

// Pages are the pages of a command and of all below it, by the names of their files, such as wf-run.1.
func (m Manual) Pages(cmd *cobra.Command) map[string]string {
	pages := map[string]string{Title(cmd) + ".1": m.page(cmd)}
	for _, sub := range cmd.Commands() {
		if hasPage(sub) {
			maps.Copy(pages, m.Pages(sub))
		}
	}
	return pages
}

// hasPage reports whether a command has a page: a topic is a part of others, and what help
// hides is hidden here too.
func hasPage(cmd *cobra.Command) bool {
	return !cmd.Hidden && cmd.Name() != "help" && (cmd.Runnable() || cmd.HasSubCommands())
}

// Title is the name of the page of a command: wf-run.
func Title(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func (m Manual) page(cmd *cobra.Command) string {
	p := newManualPage(Title(cmd), 1, m.Date, "wf "+m.Version, "wf")
	p.section("NAME")
	p.name(Title(cmd), lowerFirst(cmd.Short))
	p.section("SYNOPSIS")
	if cmd.HasAvailableSubCommands() {
		p.made(bold(cmd.CommandPath()) + " [" + italic("options") + "] " + italic("command") + " ...")
	}
	if _, operands, _ := strings.Cut(cmd.Use, " "); cmd.Runnable() && (operands != "" || !cmd.HasAvailableSubCommands() || cmd.Root() == cmd) {
		p.made(strings.TrimSpace(bold(cmd.CommandPath()) + " [" + italic("options") + "] " + roffText(operands)))
	}
	p.section("DESCRIPTION")
	p.text(cmp.Or(cmd.Long, cmd.Short+"."))
	if cmd.HasAvailableSubCommands() {
		p.section("COMMANDS")
		for _, sub := range cmd.Commands() {
			if hasPage(sub) {
				p.item(bold(Title(sub))+"(1)", sub.Short+".")
			}
		}
	}
	p.section("OPTIONS")
	manOptions(p, cmd)
	p.section("EXIT STATUS")
	for _, e := range m.Exits {
		p.item(bold(strconv.Itoa(e.Status)), e.Meaning+".")
	}
	if cmd.Root() == cmd {
		manSurroundings(p)
	}
	p.section("EXAMPLES")
	p.code(cmp.Or(cmd.Example, cmd.CommandPath()+" --help"))
	manSeeAlso(p, cmd)
	return p.String()
}

// manOptions lists the options of a command; those that all commands have are in wf(1).
func manOptions(p *manualPage, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	own := func(f *pflag.Flag) bool {
		return f.Name == "output" || cmd.Root() == cmd || cmd.Root().PersistentFlags().Lookup(f.Name) != f
	}
	list := func(f *pflag.Flag) {
		if !own(f) || f.Hidden && f.Name != "output" {
			return
		}
		name, usage := bold("--"+f.Name), upperFirst(f.Usage)+"."
		if f.Shorthand != "" {
			name = bold("-"+f.Shorthand) + ", " + name
		}
		if f.NoOptDefVal == "" {
			name += " " + italic(manValue(f))
		}
		if _, many := f.Value.(pflag.SliceValue); many {
			usage += " May be given several times."
		}
		if d := f.DefValue; !slices.Contains([]string{"", "0", "0s", "false", "[]", "-1"}, d) && !strings.Contains(usage, "default") {
			usage += " Default: " + d + "."
		}
		p.item(name, usage)
	}
	cmd.NonInheritedFlags().VisitAll(list)
	cmd.InheritedFlags().VisitAll(list)
	if cmd.Root() != cmd {
		p.made("The options that every command has (" + bold("--store") + ", " + bold("--hub") + ", " + bold("--quiet") + " and others) are described in " + bold("wf") + "(1).")
	}
}

// manValue is what stands for the value of an option: the last word of its name, or its type.
func manValue(f *pflag.Flag) string {
	if kind := f.Value.Type(); !strings.HasPrefix(kind, "string") {
		return kind
	}
	return strings.ToUpper(f.Name[strings.LastIndex(f.Name, "-")+1:])
}

// manSurroundings says where wf looks beside its command line.
func manSurroundings(p *manualPage) {
	p.section("ENVIRONMENT")
	for _, v := range [][2]string{
		{"WF_STORE", "The store, as --store."},
		{"WF_HUB, WF_HUB_TOKEN_FILE", "A server, as --hub, or several with commas between, and the file with the token for it."},
		{"WF_HAS", "What this machine has that roles need, separated by commas, such as gpu,docker."},
		{"WF_TRUST", "CIDs to trust, separated by commas, as --trust."},
		{"OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY", "Keys and address of models. Commands of workflows do not get the keys."},
		{"NO_COLOR, CLICOLOR_FORCE", "Whether colours are used."},
		{"XDG_DATA_HOME, XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR", "Where files of the user lie."},
	} {
		p.item(bold(v[0]), v[1])
	}
	p.section("FILES")
	for _, v := range [][2]string{
		{".wf", "The store and config of a project, in the directory or one above."},
		{"~/.local/share/wf", "The store where there is no other."},
		{"~/.config/wf/config.yaml", "The config of the user: providers, models, what the sandbox opens."},
		{"~/.local/state/wf", "What is trusted, which heads were seen, keys of servers."},
	} {
		p.item(italic(v[0]), v[1])
	}
}

func manSeeAlso(p *manualPage, cmd *cobra.Command) {
	if !cmd.HasParent() {
		return
	}
	names := []string{bold(Title(cmd.Parent())) + "(1)"}
	for _, near := range cmd.Parent().Commands() {
		if near != cmd && hasPage(near) && near.GroupID == cmd.GroupID {
			names = append(names, bold(Title(near))+"(1)")
		}
	}
	p.section("SEE ALSO")
	p.made(strings.Join(names, ", "))
}

// lowerFirst begins with a small letter, unless the first word is a name in capitals.
func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' || len(s) > 1 && s[1] == ' ' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
