package tree

import (
	"slices"
	"strings"
)

// Ignored chooses what the files named .gitignore and .wfignore do not leave out, as gitignore(5) has it, byte by byte as
// git does. What is below a directory that is left out is left out; the rules of a directory go before those of the
// directories above it, and those of .wfignore before those of .gitignore.
//
// Globs may choose what the rules leave out, and leave out what is chosen.
type Ignored struct {
	read             Rules
	include, exclude Spot
	out              bool   // the rules leave the directory out: it is entered for what include takes
	path             string // from the top, with a slash at its end
	rules            *IgnoreList
}

// Rules reads a file of rules by its path from the top. A file that is not there has none.
type Rules func(path string) ([]byte, error)

// ignoreFiles are the files with rules, in the order in which they are read.
var ignoreFiles = []string{".gitignore", ".wfignore"}

// HasRules reports whether a path is that of a file of rules.
func HasRules(path string) bool {
	return slices.Contains(ignoreFiles, path[strings.LastIndex(path, "/")+1:])
}

// IgnoreMax is the length in bytes of the longest file of rules: a longer one has none.
const IgnoreMax = 1 << 20

// NewIgnored is the top directory. An error is one of read.
func NewIgnored(read Rules, include, exclude Globs) (*Ignored, error) {
	g := &Ignored{read: read, include: include.Top(), exclude: exclude.Top()}
	return g, g.load()
}

// load reads the rules of the directory.
func (g *Ignored) load() error {
	for _, file := range ignoreFiles {
		text, err := g.read(g.path + file)
		if err != nil {
			return err
		}
		if len(text) <= IgnoreMax {
			g.rules = g.rules.With(strings.TrimSuffix(g.path, "/"), text)
		}
	}
	return nil
}

// Takes reports whether a file of the directory is chosen.
func (g *Ignored) Takes(name string) bool {
	return !g.exclude.Takes(name) && (g.include.Takes(name) || !g.out && !g.rules.Ignores(g.path+name, false))
}

// Enter is a directory in the directory; nil where nothing below it is chosen. An error is one of the Rules.
func (g *Ignored) Enter(name string) (Chooser, error) {
	exclude, _ := g.exclude.enter(name)
	include, some := g.include.enter(name)
	below := &Ignored{read: g.read, include: include, exclude: exclude, rules: g.rules, path: g.path + name + "/",
		out: g.out || g.rules.Ignores(g.path+name, true)}
	if exclude.whole() || below.out && !some {
		return nil, nil
	}
	if below.out {
		return below, nil
	}
	return below, below.load()
}
