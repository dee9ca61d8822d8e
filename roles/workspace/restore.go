package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace/internal/at"
)

// Restoring says how Restore changes files.
type Restoring struct {
	// Open gives the content of a file, or the text of a link. Several goroutines call it at once.
	Open func(tree.Item) (io.ReadCloser, error)
	// Keep takes a file or link that nothing has recorded, before Restore replaces it. Without it such paths are left alone, and
	// so is one for which it returns a *LeaveError.
	Keep func(path string, e tree.Entry, content io.Reader) error
	// KeepMax is how many bytes Keep takes at most; 0 is any number. A longer file that is neither state by its size is not
	// read: its entry has no Link.
	KeepMax int64
	// Dry changes nothing, and tells what would be done as things are now. Keep is called, and its error is why a path is left alone.
	Dry bool
	// Each is called behind each change with how many there were, one call at a time; nil for nothing.
	Each func(done int)
}

// A LeaveError says why a file is left alone.
type LeaveError struct{ Why string }

func (e *LeaveError) Error() string { return e.Why }

// Restored is what Restore has done. Paths are those of the trees.
type Restored struct {
	Changed   []string
	Kept      []string   // of Changed: what nothing had recorded lay there, and Keep has it
	Absent    []string   // of a dry one: what was recorded lies there no more
	Conflicts []Conflict // left alone
}

// A Conflict is a path that was left alone.
type Conflict struct{ Path, Why string }

// Restore changes what lies below a directory by the changes that tree.Diff tells between what is recorded of it and what is
// to be there. A path is changed where what lies there is what was recorded; what is as it is to be already stays. All else is
// a conflict, for nothing else has it: it is left alone, or kept and replaced.
//
// Files are written beside their places, and on disk, before they change places with those that are there; what came out
// is looked at once more, and put back if another process changed it meanwhile or has it open for writing. So a process
// that is killed leaves the old or the new state of each file, and Restore with the same changes goes on, or, with the
// reverse ones, goes back. Directories that go stay where something is left in them. Nothing is written through a link.
//
// Files get the permissions of those that they replace, but for that to execute.
func Restore(ctx context.Context, dir string, changes []tree.Change, r Restoring) (out Restored, err error) {
	root, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return out, fmt.Errorf("workspace: %w", err)
	}
	defer unix.Close(root)
	var told sync.Mutex
	done := 0
	x := &restorer{Restoring: r, ctx: ctx, root: root, out: &out, gone: map[string]bool{}, count: func() {
		if told.Lock(); r.Each != nil {
			done++
			r.Each(done)
		}
		told.Unlock()
	}}
	var batch restoreBatch
	flush := func() error {
		err := batch.run(x)
		batch = restoreBatch{}
		return err
	}
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		alone, err := x.alone(c)
		if err == nil && alone && (c.Before.Mode == tree.Dir || c.After.Mode == tree.Dir) { // what comes before it is to be in place
			if err := flush(); err != nil {
				return out, err
			}
		}
		switch {
		case err != nil:
		case alone:
			if err = x.change(c); err == nil {
				x.count()
			}
		default:
			batch.add(x, c)
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", c.Path, err)
		}
		if batch.full() {
			if err := flush(); err != nil {
				return out, err
			}
		}
	}
	return out, flush()
}

type restorer struct {
	Restoring
	ctx   context.Context
	root  int
	out   *Restored
	count func() // a change was made
	ready []placing
	gone  map[string]bool // what a dry one would have moved away
}

// placing is a change whose file is written.
type placing struct {
	tree.Change
	dir  int // where it lies
	name string
}

func (x *restorer) conflict(path, format string, args ...any) error {
	x.out.Conflicts = append(x.out.Conflicts, Conflict{path, fmt.Sprintf(format, args...)})
	return nil
}

// fresh is the name under which a file is written; nothing but what Restore wrote lies there. aside is the name from which
// it changes places: what lies there may be what somebody has written.
func fresh(name string) string { return ".wf-new-" + temporary(name)[len(".wf-part-"):] }
func aside(name string) string { return ".wf-old-" + temporary(name)[len(".wf-part-"):] }

// alone reports whether a change is made by itself: that of a directory is, and what changes nothing.
func (x *restorer) alone(c tree.Change) (bool, error) {
	for part := range strings.SplitSeq(c.Path, "/") {
		if why := tree.CheckName(part); why != "" {
			return false, fmt.Errorf("the name %q %s: %w", c.Path, why, protocol.ErrInvalidBlock)
		}
	}
	return x.Dry || c.Before.Mode == tree.Dir || c.After.Mode == tree.Dir, nil
}

// omitted reports whether a change cannot be made, since one of its states was not recorded.
func (x *restorer) omitted(c tree.Change) (bool, error) {
	if c.Before.Mode != tree.Omitted && c.After.Mode != tree.Omitted {
		return false, nil
	}
	if c.After.Mode == "" && x.absent(c.Path) {
		return true, nil
	}
	return true, x.conflict(c.Path, "it was not recorded: %s", cmp.Or(c.Before.Why, c.After.Why))
}

// change makes a change that is made by itself.
func (x *restorer) change(c tree.Change) error {
	if omitted, err := x.omitted(c); omitted {
		return err
	}
	if x.Dry {
		return x.dry(c)
	}
	way, name := path.Split(c.Path)
	dir, err := at.Walk(x.root, path.Join(".", way), unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) && c.After.Mode == "" {
		return nil
	}
	if err != nil {
		return x.conflict(c.Path, "its directory is not there: %v", err)
	}
	defer unix.Close(dir)
	return x.directory(dir, name, c)
}

// absent reports whether nothing lies at a path.
func (x *restorer) absent(p string) bool {
	way, name := path.Split(p)
	dir, err := at.Walk(x.root, path.Join(".", way), unix.O_DIRECTORY)
	if err == nil {
		_, err = at.Stat(dir, name)
		unix.Close(dir)
	}
	return errors.Is(err, unix.ENOENT)
}

// dry tells what would become of a path.
func (x *restorer) dry(c tree.Change) error {
	way, name := path.Split(c.Path)
	now := tree.Entry{}
	dir, err := at.Walk(x.root, path.Join(".", way), unix.O_DIRECTORY)
	if err == nil {
		defer unix.Close(dir)
		if now, _, err = x.look(dir, name, c); err != nil {
			return err
		}
	} else if !errors.Is(err, unix.ENOENT) && !x.goes(path.Dir(c.Path)) {
		return x.conflict(c.Path, "its directory is not there: %v", err)
	}
	if x.gone[c.Path] {
		now = tree.Entry{}
	} else if now.Mode == "" && c.Before.Mode != "" && c.Before.Mode != tree.Dir {
		x.out.Absent = append(x.out.Absent, c.Path)
	}
	switch {
	case c.After.Mode == tree.Dir && now.Mode == tree.Dir, c.Before.Mode == tree.Dir && now.Mode == "", equal(now, c.After):
		return nil
	case c.After.Mode == tree.Dir && now.Mode != "":
		return x.conflict(c.Path, "something else than a directory lies there")
	case c.After.Mode == tree.Dir, c.Before.Mode == tree.Dir && now.Mode == tree.Dir:
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
	x.gone[c.Path] = c.After.Mode == ""
	x.out.Changed = append(x.out.Changed, c.Path)
	return nil
}

// goes reports whether a path, or one on the way to it, would have been moved away.
func (x *restorer) goes(p string) bool {
	for ; p != "." && p != "/"; p = path.Dir(p) {
		if x.gone[p] {
			return true
		}
	}
	return false
}

// directory makes a directory, or removes one in which nothing is.
func (x *restorer) directory(dir int, name string, c tree.Change) error {
	if c.After.Mode == tree.Dir {
		err := unix.Mkdirat(dir, name, 0o777)
		if errors.Is(err, unix.EEXIST) {
			if s, err := at.Stat(dir, name); err == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR {
				return nil
			}
			return x.conflict(c.Path, "something else than a directory lies there")
		}
		if err == nil {
			x.out.Changed = append(x.out.Changed, c.Path)
		}
		return err
	}
	err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	switch {
	case err == nil:
		x.out.Changed = append(x.out.Changed, c.Path)
	case errors.Is(err, unix.ENOENT):
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR):
		return x.conflict(c.Path, "it holds what was never recorded")
	default:
		return err
	}
	return nil
}

// file makes a file or link ready, or removes one.
func (x *restorer) file(dir int, name string, c tree.Change) error {
	if s, err := at.Stat(dir, fresh(name)); err == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR {
		way, _ := path.Split(c.Path)
		return x.conflict(c.Path, "a directory lies where it is to be written: remove %s", way+fresh(name))
	}
	if err := x.recover(dir, name, c); err != nil {
		return err
	}
	now, perm, err := x.look(dir, name, c)
	if err != nil {
		return err
	}
	switch {
	case equal(now, c.After):
		return nil
	case now.Mode == tree.Dir:
		return x.conflict(c.Path, "a directory lies there")
	case !equal(now, c.Before) && (x.Keep == nil || now.Mode == tree.Omitted):
		return x.conflict(c.Path, "%s", unknown(now))
	}
	if c.After.Mode == "" {
		return x.remove(dir, name, c)
	}
	if err := x.write(dir, name, c, perm); err != nil {
		return err
	}
	x.ready = append(x.ready, placing{Change: c, dir: dir, name: name})
	return nil
}

func equal(a, b tree.Entry) bool { return a.Mode == b.Mode && a.Link == b.Link && a.Size == b.Size }

// unknown is why what lies at a path is a conflict.
func unknown(now tree.Entry) string {
	switch {
	case now.Mode == "":
		return "it was removed since it was recorded"
	case now.Why == tree.WhyUnstable:
		return "it changes just now"
	case now.Mode == tree.Omitted:
		return "it cannot be read: " + now.Why
	}
	return "it was changed since it was recorded"
}

// recover ends what a process that was killed had begun at a path.
func (x *restorer) recover(dir int, name string, c tree.Change) error {
	if err := unix.Unlinkat(dir, fresh(name), 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	was, _, err := x.look(dir, aside(name), c)
	if err != nil || was.Mode == "" {
		return err
	}
	if equal(was, c.After) || equal(was, c.Before) {
		now, _, err := x.look(dir, name, c)
		if err == nil && now.Mode == "" { // it was moved out, and nothing put in its place
			return at.Move(dir, aside(name), name)
		}
		if err == nil {
			err = unix.Unlinkat(dir, aside(name), 0)
		}
		return err
	}
	_, err = x.putBack(dir, name, c) // it came out, and nothing has it
	return err
}

// look is what lies under a name, with its permissions; a zero entry is nothing. What neither can be a state of a change nor is
// kept is not read, for it may be endless.
func (x *restorer) look(dir int, name string, c tree.Change) (e tree.Entry, perm uint32, err error) {
	s, err := at.Stat(dir, name)
	if errors.Is(err, unix.ENOENT) {
		return e, 0, nil
	}
	if err != nil {
		return e, 0, err
	}
	t := &taker{Taking: Taking{MaxSize: protocol.MaxSafeInt, MaxTotal: protocol.MaxSafeInt, Put: func(tree.Block) error { return nil }}, ctx: x.ctx}
	e = tree.Entry{Name: name, Mode: tree.Omitted}
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.Mode = tree.Dir
	case unix.S_IFLNK:
		e, err = t.link(dir, e)
	case unix.S_IFREG:
		kept := x.Keep != nil && (x.KeepMax == 0 || s.Size <= x.KeepMax)
		if s.Size != c.Before.Size && s.Size != c.After.Size && !kept {
			e.Mode, e.Size = tree.File, s.Size
			break
		}
		e, err = t.file(dir, name, e, s.Size, nil)
	default:
		e.Why = tree.WhySpecial
	}
	return e, uint32(s.Mode) & 0o777, err
}

// write writes the file that is to come, and proves it by its hash.
func (x *restorer) write(dir int, name string, c tree.Change, perm uint32) error {
	r, err := x.Open(tree.Item{Path: c.Path, Entry: c.After})
	if err != nil {
		return err
	}
	defer r.Close()
	if c.After.Mode == tree.Link {
		b, err := io.ReadAll(io.LimitReader(r, linkMax+1))
		if err != nil {
			return err
		}
		if int64(len(b)) != c.After.Size || protocol.RawLink(b) != c.After.Link || len(b) > linkMax || strings.Contains(string(b), "\x00") {
			return errContent
		}
		return unix.Symlinkat(string(b), dir, fresh(name))
	}
	mode := uint32(0o666)
	if c.After.Mode == tree.Exec {
		mode = 0o777
	}
	fd, err := unix.Openat(dir, fresh(name), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), c.Path)
	if c.Before.Mode == tree.File || c.Before.Mode == tree.Exec {
		perm &^= 0o111
		if c.After.Mode == tree.Exec {
			perm |= perm >> 2 & 0o111 // to execute for all that may read it
		}
		err = unix.Fchmod(fd, perm)
	}
	is, cerr := tree.Content(io.TeeReader(r, f), c.After.Size, func(tree.Block) error { return nil })
	if errors.Is(cerr, tree.ErrChanged) || cerr == nil && is != c.After.Link {
		cerr = errContent
	}
	if err = errors.Join(err, cerr, f.Close()); err != nil {
		return errors.Join(err, unix.Unlinkat(dir, fresh(name), 0))
	}
	return nil
}

// swap has a file that was written change places with what lies there.
func (x *restorer) swap(p placing) error {
	if err := at.Move(p.dir, fresh(p.name), aside(p.name)); err != nil {
		return err
	}
	err := at.Exchange(p.dir, aside(p.name), p.name)
	switch {
	case errors.Is(err, unix.ENOENT): // nothing lies there
		err = at.Move(p.dir, aside(p.name), p.name)
		if errors.Is(err, unix.EEXIST) {
			return errors.Join(unix.Unlinkat(p.dir, aside(p.name), 0), x.conflict(p.Path, "it was made meanwhile"))
		}
		if err == nil {
			x.out.Changed = append(x.out.Changed, p.Path)
		}
		return err
	case err != nil:
		return errors.Join(err, unix.Unlinkat(p.dir, aside(p.name), 0))
	}
	return x.settle(p.dir, p.name, p.Change)
}

// settle looks at what came out of its place, and removes it if something else has it.
func (x *restorer) settle(dir int, name string, c tree.Change) error {
	busy := x.open(dir, aside(name)) // first: none opens it any more by its name
	was, _, err := x.look(dir, aside(name), c)
	if err != nil {
		return err
	}
	known := equal(was, c.Before)
	if busy || !known && (x.Keep == nil || was.Mode == tree.Omitted || was.Mode == tree.Dir) {
		why, err := x.putBack(dir, name, c)
		return errors.Join(err, x.conflict(c.Path, "%s", why))
	}
	if !known {
		if err := x.keep(dir, aside(name), c.Path, was); err != nil {
			_, back := x.putBack(dir, name, c)
			if leave, ok := errors.AsType[*LeaveError](err); ok {
				return errors.Join(back, x.conflict(c.Path, "%s", leave.Why))
			}
			return errors.Join(err, back)
		}
		x.out.Kept = append(x.out.Kept, c.Path)
	}
	x.out.Changed = append(x.out.Changed, c.Path)
	return unix.Unlinkat(dir, aside(name), 0)
}

// open reports whether a process has a file open for writing.
func (x *restorer) open(dir int, name string) bool {
	f, err := at.Regular(dir, name)
	if err != nil {
		return false
	}
	defer f.Close()
	return at.Written(int(f.Fd()))
}

// keep hands what lies under a name to Keep.
func (x *restorer) keep(dir int, name, path string, e tree.Entry) error {
	e.Name = path[strings.LastIndexByte(path, '/')+1:]
	if e.Mode == tree.Link {
		text, err := at.Link(dir, name)
		if err != nil {
			return err
		}
		return x.Keep(path, e, strings.NewReader(text))
	}
	f, err := at.Regular(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return x.Keep(path, e, f)
}

// putBack puts what came out back into its place, and takes out what was put there, if nothing has changed that meanwhile. why
// tells what people see of it.
func (x *restorer) putBack(dir int, name string, c tree.Change) (why string, err error) {
	why = "it was changed meanwhile"
	if c.After.Mode != "" {
		err = at.Exchange(dir, aside(name), name)
	}
	if c.After.Mode == "" || errors.Is(err, unix.ENOENT) { // nothing was put there, or it has gone
		err = at.Move(dir, aside(name), name)
		if errors.Is(err, unix.EEXIST) {
			return x.leave(dir, name, c)
		}
		return why, err
	}
	if err != nil {
		return why, err
	}
	now, _, err := x.look(dir, aside(name), c)
	switch {
	case err != nil:
		return why, err
	case equal(now, c.After) || equal(now, c.Before):
		return why, unix.Unlinkat(dir, aside(name), 0)
	}
	return x.leave(dir, name, c)
}

// leave gives what nothing has, and whose place is taken, a name that people see.
func (x *restorer) leave(dir int, name string, c tree.Change) (why string, err error) {
	for i := 1; ; i++ {
		as := fmt.Sprintf("%s.wf-kept-%d", name, i)
		err := at.Move(dir, aside(name), as)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		way, _ := path.Split(c.Path)
		return "it was changed twice meanwhile: one of both lies at " + way + as, err
	}
}

// remove removes what is as it was recorded, or kept.
func (x *restorer) remove(dir int, name string, c tree.Change) error {
	err := at.Move(dir, name, aside(name))
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	return x.settle(dir, name, c)
}
