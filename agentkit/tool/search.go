package tool

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// Bounds of a search.
const (
	SearchMax     = 20_000 // bytes of the lines shown
	DefaultHits   = 100    // lines shown
	MaxHits       = 1_000
	hitMax        = 300       // bytes of one line
	countMax      = 10_000    // lines counted beyond those shown
	patternMax    = 2_000     // bytes
	ignoreFileMax = 256 << 10 // bytes read of one .gitignore
)

type searchArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
	Max     int    `json:"max"`
}

func search() Tool {
	return reading(Tool{
		Name: "search",
		Parameters: protocol.JSON(`{"type":"object","required":["pattern"],"additionalProperties":false,"properties":{` +
			`"pattern":{"type":"string","description":"regular expression, RE2 syntax"},` +
			`"path":{"type":"string","description":"file or directory, relative to the workspace; all of it without"},` +
			`"glob":{"type":"string","description":"only files whose name or path, relative to the workspace, is like that; ! in front: only the others"},` +
			`"max":{"type":"integer","minimum":1,"maximum":1000,"description":"lines to show, 100 without"}}}`),
		ReadOnly: true,
	}, func(ctx context.Context, at Workspace, args searchArgs) (Result, error) {
		s, problem := newSearcher(args.Pattern, args.Glob)
		if problem != "" {
			return Failed("%s", problem), nil
		}
		s.ctx, s.clean, s.max = ctx, at.clean, DefaultHits
		if args.Max > 0 {
			s.max = min(args.Max, MaxHits)
		}
		r, err := inRoot(at, args.Path, workspace.Read, func(p *workspace.Place, _ string) Result {
			s.root = p.Top
			return s.run(p.Path)
		})
		if err == nil {
			err = ctx.Err()
		}
		r.Content = at.clean(r.Content)
		return r, err
	}, nil, "pattern")
}

// A searcher walks the workspace in the order of the paths.
type searcher struct {
	ctx    context.Context
	root   *os.Root
	form   *regexp.Regexp
	prefix []byte // what every match begins with, maybe nothing
	clean  func(string) string
	only   func(name string) bool
	max    int

	hits  []string
	bytes int // of hits
	more  int // hits not shown
	in    int // files that hold them
	files int // looked into
	blind int // files and directories that cannot be read
	buf   []byte
}

// newSearcher reads the arguments, or says what is wrong with them.
func newSearcher(pattern, glob string) (s *searcher, problem string) {
	switch {
	case pattern == "":
		return nil, "pattern is empty"
	case len(pattern) > patternMax:
		return nil, fmt.Sprintf("pattern has %d bytes, more than %d", len(pattern), patternMax)
	case len(glob) > patternMax:
		return nil, fmt.Sprintf("glob has %d bytes, more than %d", len(glob), patternMax)
	}
	form, err := regexp.Compile(pattern)
	if err != nil {
		return nil, strings.TrimPrefix(err.Error(), "error parsing regexp: ") +
			" (RE2 has neither look-around nor back-references; a backslash makes a character plain)"
	}
	prefix, _ := form.LiteralPrefix()
	only, problem := fileFilter(glob)
	return &searcher{form: form, prefix: []byte(prefix), only: only}, problem
}

// fileFilter reads a glob; "" takes every file. A glob that is a directory takes what lies in it.
func fileFilter(glob string) (only func(string) bool, problem string) {
	if glob == "" {
		return func(string) bool { return true }, ""
	}
	rest, negated := strings.CutPrefix(glob, "!")
	rest = strings.TrimPrefix(rest, "./")
	var lines []string
	for _, g := range braces(rest, nil) {
		lines = append(lines, strings.NewReplacer("!", `\!`, "#", `\#`).Replace(g[:1])+g[1:])
	}
	list := (*tree.IgnoreList)(nil).With("", []byte(strings.Join(lines, "\n")))
	if list == nil {
		return nil, fmt.Sprintf("glob %q can match no file", glob)
	}
	return func(name string) bool {
		like := list.Ignores(name, false)
		for dir := path.Dir(name); !like && dir != "."; dir = path.Dir(dir) {
			like = list.Ignores(dir, true)
		}
		return like != negated
	}, ""
}

// bracesMax is how many globs one may stand for.
const bracesMax = 64

// braces writes out {a,b}; beyond bracesMax nothing is added.
func braces(glob string, to []string) []string {
	open := strings.IndexByte(glob, '{')
	if open < 0 {
		if glob != "" && len(to) < bracesMax {
			to = append(to, glob)
		}
		return to
	}
	depth, from := 0, open+1
	var parts []string
	for i := open; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '{':
			depth++
		case c == ',' && depth == 1:
			parts, from = append(parts, glob[from:i]), i+1
		case c == '}' && depth == 1:
			for _, part := range append(parts, glob[from:i]) {
				if len(to) < bracesMax {
					to = braces(glob[:open]+part+glob[i+1:], to)
				}
			}
			return to
		case c == '}':
			depth--
		}
	}
	return to // a brace that does not close
}

// run searches below name, or in the one file of that name.
func (s *searcher) run(name string) Result {
	info, err := s.root.Stat(name)
	if err != nil {
		return why(name, err)
	}
	switch {
	case info.IsDir():
		s.dir(name, s.above(name))
	case !info.Mode().IsRegular():
		return Failed("%s is no regular file", name)
	default:
		s.only = func(string) bool { return true }
		if s.file(name) == isBinary {
			return Failed("%s is binary", name)
		}
		if s.blind > 0 {
			return Failed("%s cannot be read", name)
		}
	}
	return Result{Content: s.report()}
}

// above reads the ignore files of the directories that name lies in.
func (s *searcher) above(name string) *tree.IgnoreList {
	if name == "." {
		return nil
	}
	list := s.ignores(nil, ".")
	for i := range name {
		if name[i] == '/' {
			list = s.ignores(list, name[:i])
		}
	}
	return list
}

// ignores adds the ignore files of a directory.
func (s *searcher) ignores(list *tree.IgnoreList, dir string) *tree.IgnoreList {
	within := dir
	if dir == "." {
		within = ""
		list = list.With("", s.head(".git/info/exclude"))
	}
	return list.With(within, s.head(path.Join(dir, ".gitignore")))
}

// dir walks a directory. Symbolic links are not followed.
func (s *searcher) dir(name string, list *tree.IgnoreList) {
	entries, err := fs.ReadDir(s.root.FS(), name) // sorted by name
	if err != nil {
		s.blind++
		return
	}
	list = s.ignores(list, name)
	for _, e := range entries {
		if s.ctx.Err() != nil || s.more >= countMax {
			return
		}
		at := path.Join(name, e.Name())
		switch {
		case e.IsDir():
			if e.Name() != ".git" && e.Name() != ".wf" && !list.Ignores(at, true) {
				s.dir(at, list)
			}
		case e.Type().IsRegular() && s.only(at) && !list.Ignores(at, false):
			s.file(at)
		}
	}
}

// report is what the model reads.
func (s *searcher) report() string {
	var b strings.Builder
	for _, hit := range s.hits {
		b.WriteString(hit)
	}
	switch {
	case s.more >= countMax:
		fmt.Fprintf(&b, "…[more than %d more lines; narrow pattern, path or glob]\n", s.more)
	case s.more > 0:
		fmt.Fprintf(&b, "…[%d more lines; %d lines in %d files in all]\n", s.more, s.more+len(s.hits), s.in)
	case len(s.hits) == 0:
		fmt.Fprintf(&b, "no line matches in %d files\n", s.files)
	}
	if s.blind > 0 {
		fmt.Fprintf(&b, "…[%d files or directories could not be read]\n", s.blind)
	}
	return b.String()
}
