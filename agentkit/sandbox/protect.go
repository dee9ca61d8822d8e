package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"wf/protocol"
	"wf/roles/workspace/appear"
	"wf/roles/workspace/control"
)

// Bounds of what is protected beside the repository of the workspace: each path is a few mounts.
const (
	nestedMax = 64
	pathsMax  = 1_000
)

// A protection is what of a workspace others read as orders: what wf keeps, and what controls its git repositories
// (control.Parts). Where there are namespaces paths are read-only.
type protection struct {
	eye  *control.Eye
	work string

	paths       []string
	anchors     []string       // directories that stay where they are
	absent      []control.Spot // unwanted parts that are not there now
	links       []control.Link // that lead to a part: no mount keeps them from being replaced
	unprotected int            // repositories for which there are too many
}

// protected are the repositories on the way to the directory of a command, whatever made them, and those that
// were found in the workspace, up to nestedMax. An error says that one could not be looked at.
func protected(work, dir string, found []appear.Repository) (*protection, error) {
	p := &protection{eye: control.At(work), work: work}
	way := map[string]bool{}
	for at := dir; within(at, work); at = filepath.Dir(at) {
		git, err := p.add(p.eye.Repository(at))
		if err != nil {
			return nil, err
		}
		if at == work || git {
			if _, err := p.add(p.eye.Store(filepath.Join(at, ".wf"))); err != nil {
				return nil, err
			}
			way[at] = true
		}
		if at == work {
			break
		}
	}
	above, err := p.eye.Above()
	if err == nil && above != "" {
		_, err = p.add(p.eye.Repository(above))
	}
	if err != nil {
		return nil, err
	}
	nested := 0
	for _, r := range found {
		if err := p.mount(r.Rebases...); err != nil {
			return nil, err
		}
		if way[filepath.Dir(r.Path)] && r.Kind != protocol.FoundBare {
			continue
		}
		if nested >= nestedMax || len(p.paths) > pathsMax {
			p.unprotected++
			continue
		}
		before := len(p.paths)
		if _, err := p.add(r.Parts(p.eye)); err != nil {
			return nil, err
		}
		if len(p.paths) > before {
			nested++
		}
	}
	slices.Sort(p.paths)
	p.paths = slices.Compact(p.paths)
	slices.Sort(p.anchors)
	p.anchors = slices.Compact(p.anchors)
	running.begin(p.absent)
	return p, nil
}

// add protects the parts of a repository, and reports whether there are any.
func (p *protection) add(parts control.Parts, err error) (any bool, _ error) {
	if err != nil {
		return false, err
	}
	for _, spot := range parts.Absent {
		p.refuse(spot)
	}
	for _, place := range parts.Places {
		for _, l := range place.Links {
			if l.Own && within(l.Path, p.work) && !slices.Contains(p.links, l) {
				p.links = append(p.links, l)
				p.anchors = append(p.anchors, filepath.Dir(l.Path))
			}
		}
		if place.Inner && running.mayNotMake(place.Path) {
			spot, err := p.eye.Spot(place.Path)
			if err != nil {
				return true, err
			}
			p.refuse(spot)
			continue
		}
		if !place.There || place.Whole || p.compared(place) {
			continue
		}
		if err := p.mount(place.Path); err != nil {
			return true, err
		}
	}
	return len(parts.Places)+len(parts.Absent) > 0, nil
}

// refuse has a command make nothing at a spot that stays.
func (p *protection) refuse(spot control.Spot) {
	if within(spot.Path, p.work) {
		p.absent = append(p.absent, spot)
		p.anchors = append(p.anchors, filepath.Dir(spot.Path))
	}
}

// compared reports whether a place is a file of the worktree that git tracks: switch, stash or merge write it, and fail at a
// mount. The watch of the workspace tells by which link git acts on it, once it is another.
func (p *protection) compared(place control.Place) bool {
	return place.Linked() && within(place.Path, p.work) && p.eye.Tracked(place.Path)
}

// mount protects paths that are there.
func (p *protection) mount(paths ...string) error {
	for _, path := range paths {
		if !within(path, p.work) || path == p.work {
			continue
		}
		_, there, err := p.eye.Lstat(path)
		if err != nil {
			return err
		}
		if there {
			p.paths = append(p.paths, path)
		}
	}
	return nil
}

// undone is what a protection has undone of what a command did, and what it could not undo: paths from the workspace.
type undone struct {
	removed, putBack, left []string
	failed                 error // why, for those that are left
}

// undo removes what a command has made of the absent, and puts the links back that it has replaced.
func (p *protection) undo() (u undone) {
	if p == nil {
		return u
	}
	defer running.end(p.absent)
	eye := control.At(p.work)
	note := func(path string, did bool, err error, done *[]string) {
		name := strings.TrimPrefix(path, p.work+"/")
		switch {
		case err != nil:
			u.left, u.failed = append(u.left, name), errors.Join(u.failed, err)
		case did:
			*done = append(*done, name)
		}
	}
	for _, spot := range p.absent {
		to, err := eye.PutAside(spot)
		note(spot.Path, to != "", err, &u.removed)
	}
	for _, l := range p.links {
		did, err := eye.PutBack(l)
		note(l.Path, did, err, &u.putBack)
	}
	return u
}

// running are the paths that commands of this process, which run now, may not make: a command that begins meanwhile finds there what one of
// them has made, and may not make it anew.
var running runningCommands

type runningCommands struct {
	mu     sync.Mutex
	absent map[string]int
}

func (r *runningCommands) begin(absent []control.Spot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.absent == nil {
		r.absent = map[string]int{}
	}
	for _, spot := range absent {
		r.absent[spot.Path]++
	}
}

func (r *runningCommands) end(absent []control.Spot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, spot := range absent {
		if r.absent[spot.Path]--; r.absent[spot.Path] == 0 {
			delete(r.absent, spot.Path)
		}
	}
}

func (r *runningCommands) mayNotMake(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.absent[path] > 0
}

// some lists paths, as many as an Appeared does.
func some(paths []string) string {
	few := paths[:min(len(paths), protocol.FoundMax)]
	text := strings.Join(few, ", ")
	if more := len(paths) - len(few); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// appeared adds it to what appeared, nil for nothing.
func (u undone) appeared(a *protocol.Appeared) *protocol.Appeared {
	did := slices.Concat(u.removed, u.putBack)
	if len(did)+len(u.left) == 0 {
		return a
	}
	if a == nil {
		a = &protocol.Appeared{Found: []protocol.Found{}}
	}
	a.List(&a.Left, u.left)
	a.List(&a.Undone, did)
	return a
}

// alarm is the error of what is left, nil for nothing.
func (u undone) alarm(work string) error {
	if len(u.left) == 0 {
		return nil
	}
	left := some(u.left)
	return protocol.ErrLeft.With("remove "+left+" before you use git in "+work+"; then go on",
		"ALARM: the command left %s, which git acts on outside of the sandbox, and which could not be removed: %v", left, u.failed)
}

// String tells what was undone, "" for nothing.
func (u undone) String() string {
	var did []string
	if len(u.removed) > 0 {
		did = append(did, "removed "+some(u.removed))
	}
	if len(u.putBack) > 0 {
		did = append(did, "put back "+some(u.putBack))
	}
	if len(did) == 0 {
		return ""
	}
	return "[sandbox: " + strings.Join(did, " and ") + ", by which git would run programs outside of the sandbox]\n"
}
