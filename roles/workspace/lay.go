package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace/internal/at"
)

// Laying says how Lay writes files.
type Laying struct {
	// Open gives the content of a file, or the text of a link.
	Open func(tree.Item) (io.ReadCloser, error)
	// Force replaces files and links that are there.
	Force bool
	// ReadOnly makes files that are not written any more.
	ReadOnly bool
}

// Laid is what Lay wrote.
type Laid struct {
	Files   int
	Bytes   int64
	Skipped []string // what was not written, each with why
}

// linkMax is the length in bytes of the longest text of a link.
const linkMax = 4096

// Lay writes files of a tree below a directory, which is made where it is missing. The tree may have been made by
// anyone, and what lies in the directory too: no name leads out of it, nothing is written through a link, a file
// that is there stays unless l.Force is set, and a link is made only where it leads to another place below the
// directory. Content that is not what its link says is an error wrapping protocol.ErrCorrupt, and leaves no file.
//
// Names that are the same on the file system of the directory, for it may ignore case, are an error wrapping
// protocol.ErrExists; so are files that are there, of which nothing is written then.
func Lay(dir string, items []tree.Item, l Laying) (Laid, error) {
	var out Laid
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return out, err
	}
	root, err := os.Open(dir)
	if err != nil {
		return out, err
	}
	defer root.Close()
	x := &layer{Laying: l, dir: dir, root: int(root.Fd()), made: map[inode]string{}}
	if err := x.check(items); err != nil {
		return out, err
	}
	defer x.leave()
	for _, it := range items {
		why, err := x.item(it)
		if err != nil {
			return out, fmt.Errorf("%s: %w", filepath.Join(dir, filepath.FromSlash(it.Path)), err)
		}
		if why != "" {
			out.Skipped = append(out.Skipped, it.Path+": "+why)
			continue
		}
		out.Files++
		out.Bytes += it.Size
	}
	return out, nil
}

type layer struct {
	Laying
	dir  string
	root int
	made map[inode]string // what was written or entered, by its path

	at   int // the directory of the last item, where in is not ""
	in   string
	open bool
}

type inode struct{ dev, ino uint64 }

// shownMax is how many names an error lists.
const shownMax = 5

// check finds names that no file can have, and files that are there.
func (x *layer) check(items []tree.Item) error {
	var there []string
	n := 0
	for _, it := range items {
		for part := range strings.SplitSeq(it.Path, "/") {
			if why := tree.CheckName(part); why != "" {
				return fmt.Errorf("the name %q %s: %w", it.Path, why, protocol.ErrInvalidBlock)
			}
		}
		if x.Force || it.Mode == tree.Omitted {
			continue
		}
		dir, name := path.Split(it.Path)
		fd, err := at.Walk(x.root, path.Join(".", dir), unix.O_DIRECTORY)
		if err != nil {
			continue // it is made, or refused, later
		}
		if _, err := at.Stat(fd, name); err == nil {
			if n++; n <= shownMax {
				there = append(there, it.Path)
			}
		}
		unix.Close(fd)
	}
	if n == 0 {
		return nil
	}
	if n > shownMax {
		there = append(there, fmt.Sprintf("and %d more", n-shownMax))
	}
	return protocol.ErrExists.With("--force replaces them", "%s has %s; nothing was written", x.dir, strings.Join(there, ", "))
}

// item writes one file or link; why says that it is left out.
func (x *layer) item(it tree.Item) (why string, err error) {
	if it.Mode == tree.Omitted {
		return "it was not kept: " + it.Why, nil
	}
	dir, name := path.Split(it.Path)
	if err := x.enter(dir); err != nil {
		return "", err
	}
	if s, err := at.Stat(x.at, name); err == nil {
		if as, ours := x.made[inodeOf(&s)]; ours {
			return "", collision(it.Path, as)
		}
		if s.Mode&unix.S_IFMT == unix.S_IFDIR {
			return "", protocol.ErrExists.With("move the directory away", "a directory lies there")
		}
		if !x.Force {
			return "", protocol.ErrExists.With("--force replaces it", "a file lies there")
		}
	}
	if it.Mode == tree.Link {
		return x.link(it, name)
	}
	return "", x.file(it, name)
}

func collision(a, b string) error {
	return protocol.ErrExists.With("write them into different directories, or onto another file system", "on this file system its name is that of %s, which was written before", b)
}

func inodeOf(s *unix.Stat_t) inode { return inode{uint64(s.Dev), s.Ino} }

// enter opens a directory below the top, and makes it with those on the way.
func (x *layer) enter(dir string) error {
	if x.open && x.in == dir {
		return nil
	}
	x.leave()
	fd, err := at.Open(x.root, ".", unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	way := ""
	for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if part == "" {
			break
		}
		way += part + "/"
		next := -1
		if err = unix.Mkdirat(fd, part, 0o777); err == nil || errors.Is(err, unix.EEXIST) {
			next, err = at.Open(fd, part, unix.O_DIRECTORY)
		}
		unix.Close(fd)
		if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			return protocol.ErrExists.With("move it away", "%s is no directory, and nothing is written through a link", way[:len(way)-1])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", way, err)
		}
		fd = next
		var s unix.Stat_t
		if err := unix.Fstat(fd, &s); err != nil {
			unix.Close(fd)
			return err
		}
		if as, known := x.made[inodeOf(&s)]; known && as != way {
			unix.Close(fd)
			return collision(way, as)
		}
		x.made[inodeOf(&s)] = way
	}
	x.at, x.in, x.open = fd, dir, true
	return nil
}

func (x *layer) leave() {
	if x.open {
		unix.Close(x.at)
		x.open = false
	}
}

// link makes a link that leads to a place below the directory.
func (x *layer) link(it tree.Item, name string) (why string, err error) {
	r, err := x.Open(it)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(r, linkMax+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return "", err
	}
	if int64(len(b)) != it.Size || protocol.RawLink(b) != it.Link {
		return "", errContent
	}
	to := string(b)
	if to == "" || len(b) > linkMax || strings.Contains(to, "\x00") || !filepath.IsLocal(filepath.Join(filepath.Dir(it.Path), to)) || filepath.IsAbs(to) {
		return fmt.Sprintf("it is a link that leads out of the directory, to %q", to), nil
	}
	tmp := temporary(name)
	if err := unix.Symlinkat(to, x.at, tmp); err != nil {
		return "", err
	}
	return "", x.name(tmp, name, it.Path)
}

var errContent = fmt.Errorf("what was sent is not what the link of the file says: %w", protocol.ErrCorrupt)

// temporary is the name under which a file is written.
func temporary(name string) string {
	return ".wf-part-" + protocol.RawLink([]byte(name)).String()[50:]
}

// file writes a file under another name first, and proves it by its hash.
func (x *layer) file(it tree.Item, name string) error {
	r, err := x.Open(it)
	if err != nil {
		return err
	}
	defer r.Close()
	w := writing{dir: x.at, name: temporary(name), mode: 0o666}
	if it.Mode == tree.Exec {
		w.mode = 0o777
	}
	if x.ReadOnly {
		w.mode &^= 0o222
	}
	if err := unix.Unlinkat(x.at, w.name, 0); err != nil && !errors.Is(err, unix.ENOENT) { // of a process that was killed
		return err
	}
	if err := w.content(r, it.Entry); err != nil {
		return err
	}
	return x.name(w.name, name, it.Path)
}

// writing says how a file is written that is not there yet.
type writing struct {
	dir   int
	name  string
	mode  uint32 // as the umask lets it
	exact bool   // whatever the umask
	sync  bool   // wait for the disk
}

// content writes a file, and proves it by its hash. It leaves none where there is an error.
func (w writing) content(r io.Reader, e tree.Entry) error {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	var b []byte
	err := error(nil)
	short := e.Size <= tree.WholeMax
	if short { // nothing is made of what is not right
		if b, err = buf.whole(r, e.Size); err == nil && protocol.RawLink(b) != e.Link || errors.Is(err, tree.ErrChanged) {
			err = errContent
		}
		if err != nil {
			return err
		}
	}
	fd, err := unix.Openat(w.dir, w.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, w.mode)
	if err != nil {
		return err
	}
	if w.exact {
		err = unix.Fchmod(fd, w.mode)
	}
	if err == nil && short {
		_, err = at.File(fd).Write(b)
	} else if err == nil {
		var is protocol.Link
		is, err = tree.Content(io.TeeReader(r, at.File(fd)), e.Size, func(tree.Block) error { return nil })
		if errors.Is(err, tree.ErrChanged) || err == nil && is != e.Link {
			err = errContent
		}
	}
	if err == nil && w.sync {
		err = at.Sync(fd)
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return errors.Join(err, unix.Unlinkat(w.dir, w.name, 0))
	}
	return nil
}

// name gives what was written its name. Without Force what has come there meanwhile stays.
func (x *layer) name(tmp, name, path string) error {
	var err error
	if x.Force {
		err = unix.Renameat(x.at, tmp, x.at, name)
	} else if err = unix.Linkat(x.at, tmp, x.at, name, 0); err == nil {
		err = unix.Unlinkat(x.at, tmp, 0)
	} else if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) { // a file system without hard links
		if _, there := at.Stat(x.at, name); there == nil {
			err = unix.EEXIST
		} else {
			err = unix.Renameat(x.at, tmp, x.at, name)
		}
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(x.at, tmp, 0))
	}
	s, err := at.Stat(x.at, name)
	if err == nil {
		x.made[inodeOf(&s)] = path
	}
	return err
}
