package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// shm is where POSIX shared memory lies.
const shm = "/dev/shm"

// hidden are directories in which services of the machine listen, session buses and container
// engines, and the memory that its processes share. A command sees empty ones, with what it may
// use put back.
var hidden = []string{"/run", "/var/run", shm}

// tmp becomes a command's own, unless it works in there; then it stays what it is, closed.
const tmp = "/tmp"

// namespaces furnishes the launcher's own: everything read-only but for what may be written,
// a /proc of its own processes, shared memory of its own, a loopback.
func (l *launch) namespaces() error {
	if l.NetNS {
		if err := loopback(); err != nil {
			return fmt.Errorf("bring up the loopback: %w", err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	back, err := keep(l.plan())
	if err != nil {
		return err
	}
	if err := readOnly(unix.AT_FDCWD, "/", unix.AT_RECURSIVE); err != nil {
		return fmt.Errorf("make everything read-only: %w", err)
	}
	for _, dir := range hidden {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		options := "mode=0755,size=16m"
		if dir == shm {
			options = "mode=1777"
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	for _, m := range back {
		if err := m.attach(); err != nil {
			return err
		}
	}
	// A container that hides parts of its /proc may not mount another. The old one still
	// shows no more than the names of processes: Landlock forbids to look into them.
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	return nil
}

// A planned mount is a tree to be put back at path, taken from where it lay before everything
// became read-only and hidden.
type planned struct {
	path, from string
	closed     bool // read-only
}

// plan lists what is put back, parents first: what may be written, what may be read inside of
// hidden directories, and over those the parts and sockets that stay closed.
func (l *launch) plan() []planned {
	var plan []planned
	add := func(path, from string, closed bool) { plan = append(plan, planned{path, from, closed}) }
	inside := func(path string, of []string) bool {
		return slices.ContainsFunc(of, func(dir string) bool { return within(path, dir) })
	}
	for _, path := range l.Write {
		add(path, path, false)
	}
	for _, path := range l.Read {
		if inside(path, hidden) && !inside(path, l.Write) {
			add(path, path, true)
		}
	}
	covered := hidden
	inTmp := func(path string) bool { return within(path, tmp) }
	if info, err := os.Lstat(tmp); err == nil && info.IsDir() && l.Tmp != "" && !slices.ContainsFunc(l.Write, inTmp) && !slices.ContainsFunc(l.Read, inTmp) {
		add(tmp, l.Tmp, false)
		covered = append([]string{tmp}, hidden...)
	}
	for _, path := range l.Protect {
		// The directories around it are mounts too, so that none can be moved out of the way.
		for parent := filepath.Dir(path); inside(parent, l.Write) && !slices.Contains(l.Write, parent); parent = filepath.Dir(parent) {
			add(parent, parent, false)
		}
		add(path, path, true)
	}
	for _, path := range l.Sockets {
		if !inside(path, covered) && !inside(path, l.Write) {
			add(path, os.DevNull, true)
		}
	}
	slices.SortStableFunc(plan, func(a, b planned) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.path, b.path))
	})
	return slices.CompactFunc(plan, func(a, b planned) bool { return a.path == b.path })
}

// A keptMount is a tree that is nowhere attached.
type keptMount struct {
	fd   int
	path string
	dir  bool
}

// keep takes what is planned, but for what is not there.
func keep(plan []planned) ([]keptMount, error) {
	var out []keptMount
	for _, p := range plan {
		info, err := os.Lstat(p.path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, err
		}
		from, err := pin(p.from)
		if err != nil {
			return nil, fmt.Errorf("keep %s: %w", p.path, err)
		}
		fd, err := unix.OpenTree(from, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		unix.Close(from)
		if err != nil {
			return nil, fmt.Errorf("keep %s: %w", p.path, err)
		}
		if p.closed {
			if err := readOnly(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
				return nil, fmt.Errorf("protect %s: %w", p.path, err)
			}
		}
		out = append(out, keptMount{fd, p.path, info.IsDir()})
	}
	return out, nil
}

// attach puts a tree back, making its place where that was hidden.
func (m keptMount) attach() error {
	defer unix.Close(m.fd)
	if _, err := os.Lstat(m.path); errors.Is(err, os.ErrNotExist) {
		if err := m.place(); err != nil {
			return fmt.Errorf("make a place for %s: %w", m.path, err)
		}
	}
	if err := unix.MoveMount(m.fd, "", unix.AT_FDCWD, m.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("put %s back: %w", m.path, err)
	}
	return nil
}

func (m keptMount) place() error {
	if m.dir {
		return os.MkdirAll(m.path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(m.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(m.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func readOnly(fd int, path string, flags uint) error {
	return unix.MountSetattr(fd, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// loopback brings up the only interface of a new network namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifreq, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifreq); err != nil {
		return err
	}
	ifreq.SetUint16(ifreq.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifreq)
}
