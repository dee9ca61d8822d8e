package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	// Leave says why a path is left alone, "" for one that is not; nil leaves none alone.
	Leave func(path string) (why string)
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
// that is killed, or a machine that loses its power, leaves the old or the new state of each file, and Restore with the same
// changes goes on, or, with the reverse ones, goes back. Directories that go stay where something is left in them. Nothing is
// written through a link. When Restore returns nil, what it changed is on disk.
//
// From restoreMany changes on, the file system is asked to write all it has, which waits for what other programs have written
// too; for fewer, each file and directory is asked for.
//
// Files get the permissions of those that they replace, but for that to execute.
func Restore(ctx context.Context, dir string, changes []tree.Change, r Restoring) (out Restored, err error) {
	root, err := unix.Open(Opened(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return out, fmt.Errorf("workspace: %w", err)
	}
	defer unix.Close(root)
	var told sync.Mutex
	done := 0
	x := &restorer{Restoring: r, ctx: ctx, root: root, out: &out, many: len(changes) >= restoreMany, going: map[string]bool{}, as: map[string]tree.Entry{}, count: func() {
		if told.Lock(); r.Each != nil {
			done++
			r.Each(done)
		}
		told.Unlock()
	}}
	for _, c := range changes {
		if c.Before.Mode == tree.Dir && c.After.Mode == "" {
			x.going[c.Path] = true
		}
	}
	var batch restoreBatch
	flush := func() error {
		err := batch.run(x)
		batch = restoreBatch{}
		return err
	}
	for i, c := range changes {
		if err = ctx.Err(); err != nil {
			return out, err
		}
		err = named(c.Path)
		if err == nil && r.Leave != nil {
			if why := r.Leave(c.Path); why != "" {
				out.Conflicts = append(out.Conflicts, Conflict{c.Path, why})
				continue
			}
		}
		if err == nil && i+1 < len(changes) && changes[i+1].Path == c.Path && x.turned(c, changes[i+1].After) {
			x.count()
			continue
		}
		if err == nil && i > 0 && changes[i-1].Path == c.Path { // what goes is gone before what comes, and all else depends on none in the batch
			if err := flush(); err != nil {
				return out, err
			}
		}
		switch {
		case err != nil:
		case r.Dry || c.After.Mode == tree.Dir:
			if err = x.change(c); err == nil {
				x.count()
			}
		default:
			batch.take(x, c)
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
	if err := flush(); err != nil || r.Dry || !x.many {
		return out, err
	}
	return out, at.Flush(root) // also what a process changed that was killed
}

type restorer struct {
	Restoring
	ctx   context.Context
	root  int
	out   *Restored
	many  bool                  // changes: the file system is flushed, and not each file
	count func()                // a change was made
	going map[string]bool       // directories that go
	as    map[string]tree.Entry // what a dry one would have put at paths
}

// placing is a change of what lies in a directory, with the names under which it is made. Nothing but what Restore wrote lies
// at fresh, where a file is written; aside is the name from which it changes places: what lies there may be what somebody has
// written.
type placing struct {
	tree.Change
	dir                int
	name, fresh, aside string
}

func placingOf(dir int, c tree.Change) placing {
	name := path.Base(c.Path)
	hash := temporary(name)[len(".wf-part-"):]
	return placing{c, dir, name, freshBegin + hash, asideBegin + hash}
}

const (
	freshBegin = ".wf-new-"
	asideBegin = ".wf-old-"
)

func (x *restorer) conflict(path, format string, args ...any) error {
	x.out.Conflicts = append(x.out.Conflicts, Conflict{path, fmt.Sprintf(format, args...)})
	return nil
}

// named refuses a path that no tree has.
func named(p string) error {
	for part := range strings.SplitSeq(p, "/") {
		if why := tree.CheckName(part); why != "" {
			return fmt.Errorf("the name %q %s: %w", p, why, protocol.ErrInvalidBlock)
		}
	}
	return nil
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

// turned reports whether there lies at a path of which one thing goes and another one comes, a directory in the place of a file or
// a file in that of a directory, already what comes or something else of its kind: of that the second change tells.
func (x *restorer) turned(goes tree.Change, comes tree.Entry) bool {
	s, err := x.stat(goes.Path)
	if err != nil || (s.Mode&unix.S_IFMT == unix.S_IFDIR) != (comes.Mode == tree.Dir) {
		return false
	}
	if x.Dry && goes.Before.Mode != tree.Dir {
		x.out.Absent = append(x.out.Absent, goes.Path)
	}
	return true
}

// change makes a change of a directory, or tells of any what would become of it.
func (x *restorer) change(c tree.Change) error {
	if omitted, err := x.omitted(c); omitted {
		return err
	}
	if x.Dry {
		return x.dry(c)
	}
	way, name := path.Split(c.Path)
	dir, err := at.Walk(x.root, path.Join(".", way), unix.O_DIRECTORY)
	if err != nil {
		return x.noDirectory(c, err)
	}
	defer unix.Close(dir)
	if err := x.directory(dir, name, c); err != nil || x.many {
		return err
	}
	return at.Sync(dir)
}

// noDirectory is what becomes of a change in a directory that cannot be opened. Nothing has to go where the directory is not there,
// nor where something else took its place and it is to go too: then its own change tells of what lies there.
func (x *restorer) noDirectory(c tree.Change, err error) error {
	if c.After.Mode == "" && (errors.Is(err, unix.ENOENT) || noDirectory(err) && x.goes(path.Dir(c.Path))) {
		if x.Dry && c.Before.Mode != tree.Dir {
			x.out.Absent = append(x.out.Absent, c.Path)
		}
		return nil
	}
	return x.conflict(c.Path, "its directory is not there: %v", err)
}

// noDirectory reports whether something else than a directory lies on a way.
func noDirectory(err error) bool { return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) }

// goes reports whether a directory, or one on the way to it, is to go.
func (x *restorer) goes(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if x.going[dir] {
			return true
		}
	}
	return false
}

// absent reports whether nothing lies at a path.
func (x *restorer) absent(p string) bool {
	_, err := x.stat(p)
	return errors.Is(err, unix.ENOENT) || noDirectory(err) && x.goes(path.Dir(p))
}

func (x *restorer) stat(p string) (s unix.Stat_t, err error) {
	way, name := path.Split(p)
	dir, err := at.Walk(x.root, path.Join(".", way), unix.O_DIRECTORY)
	if err == nil {
		s, err = at.Stat(dir, name)
		unix.Close(dir)
	}
	return s, err
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
	case errors.Is(err, unix.ENOTDIR):
		return x.conflict(c.Path, "something else than a directory lies there")
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return x.conflict(c.Path, "it holds what was never recorded")
	default:
		return err
	}
	return nil
}

// file makes a file or link ready to be put in place, or removes one. clean says that nothing is left in its directory of a process
// that was killed.
func (x *restorer) file(p placing, clean bool) (ready bool, err error) {
	if !clean {
		if s, err := at.Stat(p.dir, p.fresh); err == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR {
			way, _ := path.Split(p.Path)
			return false, x.conflict(p.Path, "a directory lies where it is to be written: remove %s", way+p.fresh)
		}
		if err := x.recover(p); err != nil {
			return false, err
		}
	}
	now, perm, err := x.look(p.dir, p.name, p.Change)
	if err != nil {
		return false, err
	}
	switch {
	case equal(now, p.After):
		return false, nil
	case now.Mode == tree.Dir:
		return false, x.conflict(p.Path, "a directory lies there")
	case !equal(now, p.Before) && (x.Keep == nil || now.Mode == tree.Omitted):
		return false, x.conflict(p.Path, "%s", unknown(now))
	case p.After.Mode == "":
		return false, x.remove(p)
	}
	return true, x.write(p, now, perm)
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
func (x *restorer) recover(p placing) error {
	if err := unix.Unlinkat(p.dir, p.fresh, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	was, _, err := x.look(p.dir, p.aside, p.Change)
	if err != nil || was.Mode == "" {
		return err
	}
	if equal(was, p.After) || equal(was, p.Before) {
		now, _, err := x.look(p.dir, p.name, p.Change)
		if err == nil && now.Mode == "" { // it was moved out, and nothing put in its place
			return at.Move(p.dir, p.aside, p.name)
		}
		if err == nil {
			err = unix.Unlinkat(p.dir, p.aside, 0)
		}
		return err
	}
	_, err = x.putBack(p) // it came out, and nothing has it
	return err
}

// look is what lies under a name, with its permissions; a zero entry is nothing. What neither can be a state of a change nor is
// kept is not read, for it may be endless.
func (x *restorer) look(dir int, name string, c tree.Change) (e tree.Entry, perm uint32, err error) {
	return x.lookAs(dir, name, c, nil)
}

// lookAs is look, which has opens called with a file that it reads.
func (x *restorer) lookAs(dir int, name string, c tree.Change, opens func(fd int)) (e tree.Entry, perm uint32, err error) {
	s, err := at.Stat(dir, name)
	if errors.Is(err, unix.ENOENT) {
		return e, 0, nil
	}
	if err != nil {
		return e, 0, err
	}
	t := &taker{Taking: Taking{MaxSize: protocol.MaxSafeInt, MaxTotal: protocol.MaxSafeInt}, ctx: x.ctx, opens: opens}
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

// write writes the file that is to come in the place of now, and proves it by its hash.
func (x *restorer) write(p placing, now tree.Entry, perm uint32) error {
	r, err := x.Open(tree.Item{Path: p.Path, Entry: p.After})
	if err != nil {
		return err
	}
	defer r.Close()
	if p.After.Mode == tree.Link {
		b, err := io.ReadAll(io.LimitReader(r, linkMax+1))
		if err != nil {
			return err
		}
		if int64(len(b)) != p.After.Size || protocol.RawLink(b) != p.After.Link || len(b) > linkMax || strings.Contains(string(b), "\x00") {
			return errContent
		}
		return unix.Symlinkat(string(b), p.dir, p.fresh)
	}
	w := writing{dir: p.dir, name: p.fresh, mode: 0o666, sync: !x.many}
	if p.After.Mode == tree.Exec {
		w.mode = 0o777
	}
	if now.Mode == tree.File || now.Mode == tree.Exec {
		w.mode, w.exact = perm&^0o111, true
		if p.After.Mode == tree.Exec {
			w.mode |= w.mode >> 2 & 0o111 // to execute for all that may read it
		}
	}
	return w.content(r, p.After)
}

// swap has a file that was written change places with what lies there.
func (x *restorer) swap(p placing) error {
	if err := at.Move(p.dir, p.fresh, p.aside); err != nil {
		return err
	}
	err := at.Exchange(p.dir, p.aside, p.name)
	switch {
	case errors.Is(err, unix.ENOENT): // nothing lies there
		err = at.Move(p.dir, p.aside, p.name)
		if errors.Is(err, unix.EEXIST) {
			return errors.Join(unix.Unlinkat(p.dir, p.aside, 0), x.conflict(p.Path, "it was made meanwhile"))
		}
		if err == nil {
			x.out.Changed = append(x.out.Changed, p.Path)
		}
		return err
	case err != nil:
		return errors.Join(err, unix.Unlinkat(p.dir, p.aside, 0))
	}
	return x.settle(p)
}

// settle looks at what came out of its place, and removes it if something else has it.
func (x *restorer) settle(p placing) error {
	busy := false // another process has it open for writing; none opens it any more by its name
	was, _, err := x.lookAs(p.dir, p.aside, p.Change, func(fd int) { busy = busy || at.Written(fd) })
	if err != nil {
		return err
	}
	known := equal(was, p.Before)
	if busy || !known && (x.Keep == nil || was.Mode == tree.Omitted || was.Mode == tree.Dir) {
		why, err := x.putBack(p)
		return errors.Join(err, x.conflict(p.Path, "%s", why))
	}
	if !known {
		if err := x.keep(p.dir, p.aside, p.Path, was); err != nil {
			_, back := x.putBack(p)
			if leave, ok := errors.AsType[*LeaveError](err); ok {
				return errors.Join(back, x.conflict(p.Path, "%s", leave.Why))
			}
			return errors.Join(err, back)
		}
		x.out.Kept = append(x.out.Kept, p.Path)
	}
	x.out.Changed = append(x.out.Changed, p.Path)
	return unix.Unlinkat(p.dir, p.aside, 0)
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
func (x *restorer) putBack(p placing) (why string, err error) {
	why = "it was changed meanwhile"
	if p.After.Mode != "" {
		err = at.Exchange(p.dir, p.aside, p.name)
	}
	if p.After.Mode == "" || errors.Is(err, unix.ENOENT) { // nothing was put there, or it has gone
		err = at.Move(p.dir, p.aside, p.name)
		if errors.Is(err, unix.EEXIST) {
			return x.leave(p)
		}
		return why, err
	}
	if err != nil {
		return why, err
	}
	now, _, err := x.look(p.dir, p.aside, p.Change)
	switch {
	case err != nil:
		return why, err
	case equal(now, p.After) || equal(now, p.Before):
		return why, unix.Unlinkat(p.dir, p.aside, 0)
	}
	return x.leave(p)
}

// leave gives what nothing has, and whose place is taken, a name that people see.
func (x *restorer) leave(p placing) (why string, err error) {
	for i := 1; ; i++ {
		as := fmt.Sprintf("%s.wf-kept-%d", p.name, i)
		err := at.Move(p.dir, p.aside, as)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		way, _ := path.Split(p.Path)
		return "it was changed twice meanwhile: one of both lies at " + way + as, err
	}
}

// remove removes what is as it was recorded, or kept.
func (x *restorer) remove(p placing) error {
	err := at.Move(p.dir, p.name, p.aside)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	return x.settle(p)
}
