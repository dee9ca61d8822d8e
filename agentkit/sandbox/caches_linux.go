package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// layers are the caches of the user with a layer over each that is the command's: the builds of the user
// need not be made again, and what a command writes never reaches them.
//
// Two mounts must not share a layer, so that each command that runs beside others of its workspace has a
// set of its own: the first that is free. The file holds it until it is closed, in the launcher too.
func (o own) layers(h host) ([]overlay, *os.File, error) {
	var out []overlay
	for _, cache := range h.caches() {
		if info, err := os.Stat(cache); err == nil && info.IsDir() {
			out = append(out, overlay{At: cache, Lower: cache})
		}
	}
	if len(out) == 0 {
		return nil, nil, nil
	}
	for n := 0; ; n++ {
		set := filepath.Join(o.layersDir, strconv.Itoa(n))
		held, err := holdSet(set)
		if err != nil {
			return nil, nil, fmt.Errorf("layers over the caches: %w", err)
		}
		if held == nil {
			continue
		}
		for i := range out {
			if err := out[i].within(set); err != nil {
				held.Close()
				return nil, nil, fmt.Errorf("layers over the caches: %w", err)
			}
		}
		return out, held, nil
	}
}

// holdSet locks a set of layers; nil where another command has it.
func holdSet(set string) (*os.File, error) {
	if err := os.MkdirAll(set, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(set)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	return f, nil
}

// within places the layer in a set. Only the layer itself can be written from inside, so that what is
// beside it is what was made here. The working directory of the mount before is removed: the kernel leaves a
// mark in it that the layer was not synced.
func (o *overlay) within(set string) error {
	dir := filepath.Join(set, nameOf(o.At))
	o.Upper, o.Work = filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	if err := removeClosed(o.Work); err != nil {
		return err
	}
	for _, d := range []string{o.Upper, o.Work} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	return enterable(o.Upper)
}
