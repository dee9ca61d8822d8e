package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Places that a command has for itself, where nothing else is put.
const (
	shm = "/dev/shm" // POSIX shared memory
	tmp = "/tmp"
)

// base is where the new root lies until it is the root; it may be any directory.
const base = "/usr"

// enterRoot gives the launcher, and so the command, a root directory in which there is what the
// launch names and nothing else. What is not named has no name in there: neither files nor sockets
// of the machine can be reached, whatever their modes.
//
// Trees are taken by descriptor before anything is mounted, and attached below the new root in the
// order of their depth. The root itself is a read-only tmpfs that holds mount points alone.
func (l *launch) enterRoot() error {
	trees, err := take(l.plan())
	if err != nil {
		return err
	}
	proc, err := newProc()
	if err != nil {
		return err
	}
	root, err := tmpfs("mode", "0755", "size", "1m")
	if err != nil {
		return fmt.Errorf("make a root: %w", err)
	}
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, base, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("place the root: %w", err)
	}
	r := newRoot{fd: root, made: map[string]bool{}}
	for _, t := range trees {
		if err := r.attach(t); err != nil {
			return fmt.Errorf("put %s into the root: %w", t.path, err)
		}
	}
	if err := r.attach(tree{planned: planned{path: "/proc"}, fd: proc, dir: true}); err != nil {
		return fmt.Errorf("put /proc into the root: %w", err)
	}
	for _, link := range append(l.Links, devLinks...) {
		if err := r.link(link); err != nil {
			return fmt.Errorf("link %s in the root: %w", link.Path, err)
		}
	}
	if err := unix.MountSetattr(root, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return pivot(root)
}

// pivot makes a mount the root of this process, and lets go of the root before.
func pivot(root int) error {
	if err := unix.Fchdir(root); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the root before: %w", err)
	}
	unix.Close(root)
	return unix.Chdir("/")
}

// A planned mount is a tree that lies at path in the new root.
type planned struct {
	path, from string   // from "" is an empty one in memory
	closed     bool     // read-only
	wall       bool     // without it the command would not be confined
	over       *overlay // the tree is read-only below a layer of its own
}

// devLinks are what programs expect beside the devices.
var devLinks = []symlink{
	{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"},
}

// plan lists what lies in the new root, parents first: what may be read, what may be written, and
// over that the parts and sockets that stay closed. What lies in a tree that is there already, as
// open as it should be, is not mounted again.
func (l *launch) plan() []planned {
	var plan []planned
	add := func(p planned) {
		p.path = l.place(p.path)
		plan = append(plan, p)
	}
	for path := range devices {
		add(planned{path: path, from: path})
	}
	for _, path := range l.Devices {
		add(planned{path: path, from: path})
	}
	if l.SSHAgent != "" {
		add(planned{path: agentSocket, from: l.SSHAgent, closed: true})
	}
	add(planned{path: shm})
	for _, o := range l.Overlays {
		add(planned{path: o.At, from: o.Lower[0], over: &o})
	}
	for _, path := range l.Read {
		if !inside(path, l.Write) && !(l.moved() && within(path, l.At)) && !within(path, "/proc") {
			add(planned{path: path, from: path, closed: true})
		}
	}
	if l.ownTmp() {
		add(planned{path: tmp, from: l.Tmp})
	}
	for _, path := range l.Write {
		add(planned{path: path, from: path})
	}
	// A directory that is a mount cannot be moved out of the way, nor can those around it.
	anchor := func(dir string) {
		for ; inside(dir, l.Write) && !slices.Contains(l.Write, dir); dir = filepath.Dir(dir) {
			add(planned{path: dir, from: dir, wall: true})
		}
	}
	for _, dir := range l.Anchors {
		anchor(dir)
	}
	for _, path := range l.Protect {
		anchor(filepath.Dir(path))
		add(planned{path: path, from: path, closed: true, wall: true})
	}
	for _, path := range l.Sockets {
		if inside(path, l.Write) || inside(path, l.Read) {
			add(planned{path: path, from: os.DevNull, closed: true, wall: inside(path, l.Write)})
		}
	}
	slices.SortStableFunc(plan, func(a, b planned) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.path, b.path))
	})
	var out []planned
	for _, p := range plan {
		if !slices.ContainsFunc(out, func(q planned) bool { return q.covers(p) }) {
			out = append(out, p)
		}
	}
	return out
}

// ownTmp reports whether the command has a /tmp of its own: not where it works in there, since what it
// wrote beside its workspace would be lost.
func (l *launch) ownTmp() bool {
	inTmp := func(path string) bool { return within(path, tmp) }
	return l.Tmp != "" && !inTmp(l.At) && !slices.ContainsFunc(l.Write, inTmp) && !slices.ContainsFunc(l.Read, inTmp)
}

// settle goes over to the paths that the command has.
func (l *launch) settle() {
	l.Dir = l.place(l.Dir)
	for i, path := range l.Write {
		l.Write[i] = l.place(path)
	}
}

// covers reports whether p is in the root already, as p would be, where q is.
func (q planned) covers(p planned) bool {
	if q.path == p.path {
		return true
	}
	return p.closed && q.closed && p.from == p.path && q.from == q.path && within(p.path, q.path)
}

// A tree is a mount that is not attached yet, or a copy of a file.
type tree struct {
	planned
	fd     int
	dir    bool
	copied []byte // with fd -1
}

// copyMax is up to how many bytes a file of /etc is copied into the root, where it is read-only like a
// mount and costs a tenth of one. Root alone writes there.
const copyMax = 64 << 10

func (p planned) copies() bool { return p.closed && p.from == p.path && within(p.path, "/etc") }

// take opens the planned trees. One that the command is given may not be there, or not be for the user: then the command does
// not have it. One that is a wall was there when it was looked at.
func take(plan []planned) ([]tree, error) {
	var out []tree
	for _, p := range plan {
		t, err := p.take()
		switch {
		case err == nil:
			out = append(out, t)
		case p.wall && moved(err):
			return nil, fmt.Errorf("take %s, which was moved meanwhile: %w", p.path, errMoved)
		case p.wall, !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return nil, fmt.Errorf("take %s: %w", p.path, err)
		}
	}
	return out, nil
}

// moved reports whether something else is under a path, or nothing, than when it was looked at.
func moved(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// small is the content of a file of at most copyMax bytes, not nil; of anything else it is nil. System calls alone are
// a third of what os.ReadFile takes.
func small(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENXIO) { // a socket
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size > copyMax {
		return nil, err
	}
	b := make([]byte, stat.Size)
	n, err := unix.Read(fd, b)
	return b[:max(n, 0)], err
}

func (p planned) take() (tree, error) {
	t := tree{planned: p, dir: true}
	var err error
	switch {
	case p.over != nil:
		if t.fd, err = p.over.mount(); err == nil {
			return t, nil
		}
		// A file system that can be no layer: the command has a cache of its own and no more.
		p.from, p.over = p.over.Upper, nil
		return p.take()
	case p.from == "":
		t.fd, err = tmpfs("mode", "1777")
		return t, err
	}
	if p.copies() {
		if t.copied, err = small(p.from); t.copied != nil || err != nil {
			t.fd, t.dir = -1, false
			return t, err
		}
	}
	from, err := pin(p.from)
	if err != nil {
		return t, err
	}
	defer unix.Close(from)
	var stat unix.Stat_t
	if err := unix.Fstat(from, &stat); err != nil {
		return t, err
	}
	t.dir = stat.Mode&unix.S_IFMT == unix.S_IFDIR
	if t.fd, err = unix.OpenTree(from, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
		return t, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if p.closed {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return t, unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

// A newRoot is the root of a command while it is furnished.
type newRoot struct {
	fd    int             // of its directory
	made  map[string]bool // directories in the root itself
	trees []string        // what has been put into it
}

// attach puts a tree at its path, where it makes a place for it. No link is followed: one on the way
// was put there since the path was resolved.
func (r *newRoot) attach(t tree) error {
	if t.fd < 0 {
		return r.write(t)
	}
	defer unix.Close(t.fd)
	if !inside(t.path, r.trees) { // the way there is in the root itself, which holds no links yet
		if err := r.place(t); err != nil {
			return err
		}
		r.trees = append(r.trees, t.path)
		return unix.MoveMount(t.fd, "", r.fd, "."+t.path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	place, err := r.open(t.path)
	switch {
	case t.wall && moved(err):
		return fmt.Errorf("it was moved meanwhile: %w", errMoved)
	case t.from == os.DevNull && moved(err):
		return nil // a socket that has no name in here
	}
	if errors.Is(err, unix.ENOENT) {
		if err := r.place(t); err != nil {
			return err
		}
		place, err = r.open(t.path)
	}
	if err != nil {
		return err
	}
	defer unix.Close(place)
	return unix.MoveMount(t.fd, "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

func (r *newRoot) open(path string) (int, error) {
	return unix.Openat2(r.fd, "."+path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH})
}

// place makes the file or directory on which a tree is put.
func (r *newRoot) place(t tree) error {
	if t.dir {
		return r.directories(t.path)
	}
	if err := r.directories(filepath.Dir(t.path)); err != nil {
		return err
	}
	return unix.Mknodat(r.fd, "."+t.path, unix.S_IFREG|0o444, 0)
}

// write puts a copy into the root.
func (r *newRoot) write(t tree) error {
	if err := r.directories(filepath.Dir(t.path)); err != nil {
		return err
	}
	fd, err := unix.Openat(r.fd, "."+t.path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := unix.Write(fd, t.copied)
	if err == nil && n < len(t.copied) {
		err = io.ErrShortWrite
	}
	return err
}

// directories makes a directory and those above it.
func (r *newRoot) directories(path string) error {
	if path == "/" || r.made[path] {
		return nil
	}
	if err := r.directories(filepath.Dir(path)); err != nil {
		return err
	}
	r.made[path] = true
	if err := unix.Mkdirat(r.fd, "."+path, 0o755); !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// link makes a symbolic link, unless there is something.
func (r *newRoot) link(s symlink) error {
	if err := r.directories(filepath.Dir(s.Path)); err != nil {
		return err
	}
	err := unix.Symlinkat(s.To, r.fd, "."+s.Path)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EROFS) {
		return nil // a tree that was put there has its own
	}
	return err
}

// tmpfs makes an empty file system in memory.
func tmpfs(options ...string) (int, error) { return newMount("tmpfs", options...) }

// newMount makes a file system that is nowhere attached; options are names with their values, ""
// for one that has none.
func newMount(kind string, options ...string) (int, error) {
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(fd)
	for i := 0; i < len(options); i += 2 {
		set := func() error { return unix.FsconfigSetString(fd, options[i], options[i+1]) }
		if options[i+1] == "" {
			set = func() error { return unix.FsconfigSetFlag(fd, options[i]) }
		}
		if err := set(); err != nil {
			return -1, fmt.Errorf("%s=%s: %w", options[i], options[i+1], err)
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, fmt.Errorf("create: %w", err)
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// newProc is a /proc of the processes of this namespace. A container that hides parts of its /proc
// may not mount another: the old one shows no more than the names of processes, since Landlock forbids
// to look into them.
func newProc() (int, error) {
	if fd, err := newMount("proc"); err == nil {
		return fd, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC})
	}
	t, err := planned{path: "/proc", from: "/proc", closed: true}.take()
	return t.fd, err
}
