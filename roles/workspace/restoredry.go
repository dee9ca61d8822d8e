package workspace

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"wf/protocol/tree"
	"wf/roles/workspace/internal/at"
)

// dry tells what would become of a path behind the changes that were told before.
func (x *restorer) dry(c tree.Change) error {
	way, name := path.Split(c.Path)
	dir, made, err := x.dryWalk(path.Clean(way))
	if err != nil {
		return x.noDirectory(c, err)
	}
	now, told := x.as[c.Path]
	if !made {
		defer unix.Close(dir)
		if !told {
			if now, _, err = x.look(dir, name, c); err != nil {
				return err
			}
		}
	}
	if now.Mode == "" && c.Before.Mode != "" && (c.Before.Mode != tree.Dir || c.After.Mode == tree.Dir) {
		x.out.Absent = append(x.out.Absent, c.Path)
	}
	switch {
	case c.After.Mode == tree.Dir && now.Mode == tree.Dir, equal(now, c.After):
		return nil
	case c.After.Mode == tree.Dir && now.Mode != "", c.Before.Mode == tree.Dir && c.After.Mode == "" && now.Mode != tree.Dir:
		return x.conflict(c.Path, "something else than a directory lies there")
	case c.After.Mode == tree.Dir:
	case c.Before.Mode == tree.Dir:
		stays, err := x.dryStays(dir, name, c.Path)
		if err != nil {
			return err
		}
		if stays {
			return x.conflict(c.Path, "it holds what was never recorded")
		}
	case now.Mode == tree.Dir:
		return x.conflict(c.Path, "a directory lies there")
	case !equal(now, c.Before) && (x.Keep == nil || now.Mode == tree.Omitted):
		return x.conflict(c.Path, "%s", unknown(now))
	case !equal(now, c.Before) && now.Mode != "":
		err := x.keep(dir, name, c.Path, now)
		if leave, ok := errors.AsType[*LeaveError](err); ok {
			return x.conflict(c.Path, "%s", leave.Why)
		}
		if err != nil {
			return err
		}
		x.out.Kept = append(x.out.Kept, c.Path)
	}
	x.as[c.Path] = c.After
	x.out.Changed = append(x.out.Changed, c.Path)
	return nil
}

// dryWalk opens a directory; made says that it is one that would have been made.
func (x *restorer) dryWalk(way string) (dir int, made bool, err error) {
	for p := way; p != "."; p = path.Dir(p) {
		switch e, told := x.as[p]; {
		case told && e.Mode == tree.Dir:
			return -1, true, nil
		case told && e.Mode == "":
			return -1, false, unix.ENOENT
		case told:
			return -1, false, unix.ENOTDIR
		}
	}
	dir, err = at.Walk(x.root, way, unix.O_DIRECTORY)
	return dir, false, err
}

// dryStays reports whether something is left in a directory of which all that was recorded would have gone.
func (x *restorer) dryStays(dir int, name, p string) (bool, error) {
	fd, err := at.Open(dir, name, unix.O_DIRECTORY)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for {
		n, err := at.Names(fd, buf[:])
		if n == 0 || err != nil {
			return false, err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, in := range names {
			if e, told := x.as[path.Join(p, in)]; !told || e.Mode != "" {
				return true, nil
			}
		}
	}
}
