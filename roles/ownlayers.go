package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"wf/files"
	"wf/protocol"
	"wf/roles/workspace"
)

// Layering are Walls within which commands can work in a directory that lies in layers.
type Layering interface {
	// Overlay mounts a directory that is never changed below one of what is written; work is a directory beside that, which it
	// empties once no command of another process works in the layers. The error says that this machine, or the file system, cannot do it.
	Overlay(lower, upper, work string) (*workspace.View, error)
}

// Layered is a Performer that can work where the files of Turn.Workspace lie in layers: it and its tools open them by package
// workspace, and programs that it starts are confined.
type Layered interface {
	Layered(turn protocol.Turn) bool
}

// A copy in layers has no files of its own, but what the visit changed, over those of a copy that is never changed, a base:
//
//	ROOT/RUN/KEY/files   empty: where the mount lies for confined commands
//	ROOT/RUN/KEY/upper   what the visit wrote
//	ROOT/RUN/KEY/work    of the kernel, while it is mounted
//	ROOT/RUN/base-KEY    the base, an own copy itself, with the key that the visits of a fan-out share
const (
	ownUpper = "upper"
	ownWork  = "work"
)

// BaseKey is the key of the base of copies.
func BaseKey(key string) string { return "base-" + key }

// CanLayer reports whether a copy that is yet to be made could lie in layers.
func (o *OwnCopy) CanLayer(w Layering) bool {
	v, err := o.overlay(w, o.Files())
	return err == nil && v.Close() == nil
}

func (o *OwnCopy) overlay(w Layering, lower string) (*workspace.View, error) {
	upper, work := filepath.Join(o.dir, ownUpper), filepath.Join(o.dir, ownWork)
	if err := errors.Join(files.MakeDir(upper), files.MakeDir(work)); err != nil {
		return nil, err
	}
	return w.Overlay(lower, upper, work)
}

// Mount has this process, and what confined commands it starts, find in Files the files of a base, and what was written over them,
// until leave is called. The base is kept from being removed meanwhile. One that is not there, or was marked by Ready with what does
// not begin with the word mark, is an error wrapping fs.ErrNotExist.
func (o *OwnCopy) Mount(w Layering, base, mark string) (leave func() error, err error) {
	dir := filepath.Join(filepath.Dir(o.dir), base)
	free, is, err := shareReady(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, free())
		}
	}()
	if word, _, _ := strings.Cut(is, " "); word != mark {
		return nil, fmt.Errorf("%s has other files: %w", dir, fs.ErrNotExist)
	}
	v, err := o.overlay(w, filepath.Join(dir, ownFiles))
	if err != nil {
		return nil, err
	}
	hide, err := workspace.Show(o.Files(), v)
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return func() error {
		hide()
		return errors.Join(v.Close(), free())
	}, nil
}

// shareReady shares a copy, and gives its mark. One without is an error wrapping fs.ErrNotExist.
func shareReady(dir string) (free func() error, mark string, err error) {
	free, err = ShareOwnCopy(dir)
	if err != nil {
		return nil, "", err
	}
	b, err := files.Read(filepath.Join(dir, ownReady), 4096)
	if err == nil {
		_, err = os.Lstat(filepath.Join(dir, ownFiles)) // the mark alone is no copy
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("%s: %w", dir, err), free())
	}
	return free, string(b), nil
}

// ReadyOwnCopy is the mark of a copy, in which others may work. One without is an error wrapping fs.ErrNotExist.
func ReadyOwnCopy(root string, run protocol.RunID, key string) (mark string, err error) {
	free, mark, err := shareReady(filepath.Join(root, string(run), key))
	if err == nil {
		err = free()
	}
	return mark, err
}

// ReadyInLayers marks a copy as made. Nothing was written in it yet, and its base is on disk.
func (o *OwnCopy) ReadyInLayers(mark string) error {
	return files.Replace(filepath.Join(o.dir, ownReady), []byte(mark+inLayers))
}

// InLayers is a mark without what says that the copy lies in layers, and whether that was said.
func InLayers(mark string) (string, bool) { return strings.CutSuffix(mark, inLayers) }

const inLayers = " layers"
