package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Copying bounds Copy.
type Copying struct {
	MaxSize  int64 // bytes of all files
	MaxFiles int   // files, links and directories
}

// Copy makes a directory with the files of another one, whose names anyone may have given: no link is followed, and no
// pipe, socket or device opened or copied. .git and .wf are left out wherever they lie. Permissions and times of files stay,
// and a link that leads into the directory by its absolute path leads to the same place of the copy. What lies beyond a limit is a *LimitError;
// then, and after any other error, nothing is left of the copy.
func Copy(ctx context.Context, from, to string, c Copying) (err error) {
	src, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	defer src.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, RemoveAll(to))
		}
	}()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	x := &copier{Copying: c, ctx: ctx, from: from}
	return x.dir(src, dst, "")
}

// RemoveAll removes a directory that a run worked in, also where a directory in it cannot be written.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return root.Chmod(name, 0o700)
		}
		return nil // what cannot be looked at is told when it cannot be removed
	})
	return errors.Join(err, os.RemoveAll(dir))
}

type copier struct {
	Copying
	ctx   context.Context
	from  string
	files int
	bytes int64
}

// dir copies what lies in an open directory into another one.
func (x *copier) dir(src, dst *os.Root, at string) error {
	d, err := src.Open(".")
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("%s: %w", path.Join(at, "."), err)
	}
	for _, e := range entries {
		name := e.Name()
		if err := x.ctx.Err(); err != nil {
			return context.Cause(x.ctx)
		}
		if Reserved(name) != "" {
			continue
		}
		whole := path.Join(at, name)
		switch kind := e.Type(); {
		case kind.IsDir(), kind.IsRegular(), kind == fs.ModeSymlink:
		default:
			continue
		}
		if x.files++; x.files > x.MaxFiles {
			return &LimitError{whole, fmt.Sprintf("there are more than %d files", x.MaxFiles), "max_files"}
		}
		if err := x.entry(src, dst, name, whole, e); err != nil {
			if errors.As(err, new(*LimitError)) || x.ctx.Err() != nil {
				return err
			}
			return fmt.Errorf("copy %s: %w", whole, err)
		}
	}
	return nil
}

func (x *copier) entry(src, dst *os.Root, name, whole string, e fs.DirEntry) error {
	switch {
	case e.IsDir():
		return x.below(src, dst, name, whole)
	case e.Type() == fs.ModeSymlink:
		target, err := src.Readlink(name)
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(x.from, target); err == nil && filepath.IsAbs(target) && filepath.IsLocal(rel) {
			if target, err = filepath.Rel("/"+path.Dir(whole), "/"+rel); err != nil {
				return err
			}
		}
		return dst.Symlink(target, name)
	}
	return x.file(src, dst, name, whole)
}

func (x *copier) below(src, dst *os.Root, name, whole string) error {
	info, err := src.Lstat(name)
	if err != nil {
		return err
	}
	inner, err := src.OpenRoot(name)
	if err != nil {
		return err
	}
	defer inner.Close()
	if err := dst.Mkdir(name, 0o700); err != nil {
		return err
	}
	made, err := dst.OpenRoot(name)
	if err != nil {
		return err
	}
	defer made.Close()
	if err := x.dir(inner, made, whole); err != nil {
		return err
	}
	return dst.Chmod(name, info.Mode().Perm()|0o700)
}

func (x *copier) file(src, dst *os.Root, name, whole string) error {
	in, err := src.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err // it was a file a moment ago
	}
	tooLarge := &LimitError{whole, fmt.Sprintf("the files are larger than %s together", sizeText(x.MaxSize)), "max_total"}
	if info.Size() > x.MaxSize-x.bytes {
		return tooLarge
	}
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, x.MaxSize-x.bytes+1))
	if x.bytes += n; err == nil && x.bytes > x.MaxSize {
		err = tooLarge
	}
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return dst.Chtimes(name, info.ModTime(), info.ModTime())
}

// sizeText is a number of bytes for people.
func sizeText(bytes int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/1e6), ".0") + " MB"
}
