package tree

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Globs choose files by their paths from the top of a directory. The last one that fits decides.
//
//	report.html     that file, or all that is below that directory
//	dist/*.js       * stands for any characters but slashes, ? for one, [a-z] for one of several
//	dist/**         ** stands for any directories, or none
//	!dist/**/*.map  ! leaves out what was chosen before
//
// Case counts. Names that begin with a dot are as others.
type Globs struct{ all []glob }

type glob struct {
	parts []string
	not   bool
}

// NewGlobs reads globs. The error names the one that is wrong, and says why.
func NewGlobs(texts []string) (Globs, error) {
	var g Globs
	for _, text := range texts {
		one, err := newGlob(text)
		if err != nil {
			return Globs{}, err
		}
		g.all = append(g.all, one)
	}
	if len(g.all) > 0 && !slices.ContainsFunc(g.all, func(x glob) bool { return !x.not }) {
		return Globs{}, fmt.Errorf("%q: leaves out, and nothing was chosen", texts[0])
	}
	return g, nil
}

func newGlob(text string) (g glob, err error) {
	rest, not := strings.CutPrefix(text, "!")
	switch {
	case rest == "":
		return g, fmt.Errorf("%q is empty", text)
	case strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "~"):
		return g, fmt.Errorf("%q is not relative to the workspace", text)
	case strings.Contains(rest, "\x00"):
		return g, fmt.Errorf("%q holds a NUL", text)
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == ".." {
			return g, fmt.Errorf("%q leads by .. out of the workspace", text)
		}
		if part == "" || part == "." {
			continue
		}
		if _, err := path.Match(part, ""); err != nil {
			return g, fmt.Errorf("%q: %w", text, err)
		}
		if part == "**" && len(g.parts) > 0 && g.parts[len(g.parts)-1] == "**" {
			continue
		}
		g.parts = append(g.parts, part)
	}
	if n := len(g.parts); n == 0 || g.parts[n-1] == "**" {
		g.parts = append(g.parts, "*") // what is in a directory, not the directory
	}
	g.not = not
	return g, nil
}

// A Chooser is a directory of which some files are chosen.
type Chooser interface {
	// Takes reports whether a file of the directory is chosen.
	Takes(name string) bool
	// Enter is a directory in the directory; nil where nothing below it is chosen.
	Enter(name string) (Chooser, error)
}

// A Spot is a directory as globs see it: how far each of them fits the way to it.
type Spot struct {
	globs []glob
	at    []fits // of each glob
}

// fits are the parts of a glob that the next name may fit; whole is a glob that fits the directory, and so
// all that is below it.
type fits struct {
	parts []int
	whole bool
}

// Top is the directory that paths begin in.
func (g Globs) Top() Spot {
	s := Spot{globs: g.all, at: make([]fits, len(g.all))}
	for i := range g.all {
		s.at[i].parts = g.all[i].from(nil, 0)
	}
	return s
}

// from adds a part, and the one behind it where it may stand for nothing.
func (g *glob) from(to []int, part int) []int {
	if slices.Contains(to, part) {
		return to
	}
	to = append(to, part)
	if g.parts[part] == "**" {
		to = append(to, part+1) // "**" is never the last one, nor followed by another
	}
	return to
}

// Takes reports whether a file of the directory is chosen.
func (s Spot) Takes(name string) bool {
	for i := len(s.at) - 1; i >= 0; i-- {
		if s.at[i].whole || s.globs[i].next(s.at[i], name).whole {
			return !s.globs[i].not
		}
	}
	return false
}

// Enter is a directory in the directory; nil where nothing below it is chosen. It has no errors.
func (s Spot) Enter(name string) (Chooser, error) {
	if below, ok := s.enter(name); ok {
		return below, nil
	}
	return nil, nil
}

// whole reports whether all below the directory is chosen.
func (s Spot) whole() bool {
	for i := len(s.at) - 1; i >= 0; i-- {
		if s.at[i].whole {
			return !s.globs[i].not
		}
		if len(s.at[i].parts) > 0 {
			return false
		}
	}
	return false
}

// enter is Enter; ok is false where nothing below it is chosen.
func (s Spot) enter(name string) (below Spot, ok bool) {
	below = Spot{s.globs, make([]fits, len(s.at))}
	for i := range s.at {
		f := s.at[i]
		if !f.whole {
			f = s.globs[i].next(f, name)
		}
		below.at[i] = f
		switch {
		case !s.globs[i].not:
			ok = ok || f.whole || len(f.parts) > 0
		case f.whole:
			ok = false // until a later one chooses again
		}
	}
	return below, ok
}

// next is how a glob fits behind one more name.
func (g *glob) next(f fits, name string) (out fits) {
	for _, part := range f.parts {
		if g.parts[part] == "**" {
			out.parts = g.from(out.parts, part)
			continue
		}
		if fit, err := path.Match(g.parts[part], name); err != nil || !fit {
			continue
		}
		if part == len(g.parts)-1 {
			out.whole = true
		} else {
			out.parts = g.from(out.parts, part+1)
		}
	}
	return out
}
