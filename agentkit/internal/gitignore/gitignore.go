// Package gitignore tells which files git would ignore.
//
// A List is what one .gitignore says, on top of the List of the directory above:
//
//	root .gitignore ◄── src/.gitignore ◄── src/gen/.gitignore
//
// The deepest file with a matching line decides, and in it the last such line. As in git, what
// lies below an ignored directory cannot be taken back: a walk does not enter one.
//
// Paths have slashes and are relative to where the first List was read. Wildcards match runes,
// where git matches bytes.
package gitignore

import (
	"bytes"
	"path"
	"strings"
)

// List is an immutable list of patterns; nil ignores nothing.
type List struct {
	above    *List
	dir      string // the patterns are relative to it, "" is the root
	patterns []pattern
}

// With adds the text of an ignore file that lies in dir ("" is the root). Lines that git cannot
// read match nothing.
func (l *List) With(dir string, text []byte) *List {
	own := &List{above: l, dir: dir}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range bytes.Lines(text) {
		s := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if p, ok := parse(s); ok {
			own.patterns = append(own.patterns, p)
		}
	}
	if len(own.patterns) == 0 {
		return l
	}
	return own
}

// Ignores reports whether a path is ignored, leaving aside whether one of the directories it
// lies in is.
func (l *List) Ignores(name string, isDir bool) bool {
	for ; l != nil; l = l.above {
		rel, ok := below(l.dir, name)
		if !ok {
			continue
		}
		base := path.Base(rel)
		for i := len(l.patterns) - 1; i >= 0; i-- {
			if p := &l.patterns[i]; (isDir || !p.dirOnly) && p.matches(rel, base) {
				return !p.negated
			}
		}
	}
	return false
}

// below is name relative to dir, if it lies in it.
func below(dir, name string) (string, bool) {
	if dir == "" {
		return name, true
	}
	rest, ok := strings.CutPrefix(name, dir)
	if !ok || !strings.HasPrefix(rest, "/") {
		return "", false
	}
	return rest[1:], true
}
