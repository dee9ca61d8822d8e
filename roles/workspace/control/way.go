package control

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A Place is where something lies, or would lie, that git or wf acts on.
type Place struct {
	Name  string // the path by which it is acted on, absolute
	Path  string // to which that leads: absolute, without links
	There bool   // something lies at Path, which is no link
	Whole bool   // the whole repository lies in there
	Inner bool   // a part of a git directory, or of .git or .wf itself, with no link on the way
	Links []Link // on the way from Name to Path
}

// Linked reports whether a link on the way decides what lies at the place.
func (p Place) Linked() bool { return len(p.Links) > 0 }

// A Link is a link on the way to a Place.
type Link struct {
	Path string // absolute; no directory on the way to it is a link
	To   string // its text
	Own  bool   // it lies where git and wf keep what is theirs, and no command of git changes it
	at   Spot   // of its own ones
}

// Follow goes the way of an absolute path by links.
func (e *Eye) Follow(path string) (Place, error) { return e.follow("/", path) }

// follow goes the way of a path below a directory, absolute and without links, or of an absolute path.
func (e *Eye) follow(dir, path string) (Place, error) {
	p := Place{Name: path}
	here, rest := "/", path
	if !filepath.IsAbs(path) {
		p.Name, here = filepath.Join(dir, path), dir
	}
	for {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			p.Path, p.There = here, true
			return p, nil
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if name == "." || name == ".." {
			if kind, err := e.Kind(here); err != nil || kind != unix.S_IFDIR {
				p.Path = filepath.Join(here, name, rest) // nothing
				return p, err
			}
			here = filepath.Join(here, name)
			continue
		}
		next := filepath.Join(here, name)
		to, there, err := e.link(next)
		if err != nil {
			return p, err
		}
		if !there || to != "" && len(p.Links) == linksMax {
			p.Path = filepath.Join(next, rest) // nothing: no program finds more there than the kernel
			return p, nil
		}
		if to == "" {
			here = next
			continue
		}
		p.Links = append(p.Links, Link{Path: next, To: to})
		if filepath.IsAbs(to) {
			here = "/"
		}
		rest = to + "/" + rest
	}
}
