package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"wf/files"
	"wf/roles/workspace"
)

// layers are the caches that a command finds, as layers gives them: those of the user, or for a command that
// reaches a network the seed of go alone, since what the user has built could be carried out. A command whose
// result may be reused has the seed below the user's of go, without results of tests, and the downloads of npm. The
// files hold them.
func (p Policy) layers(o own, h host) ([]overlay, []*os.File, error) {
	caches := h.caches()
	var held []*os.File
	if p.online() || p.Reused {
		seed, lock, err := h.openSeed()
		if err != nil {
			return nil, nil, err
		}
		if lock != nil {
			held = append(held, lock)
		}
		if p.online() {
			caches = []overlay{{At: seed, Env: "GOCACHE"}}
		} else {
			caches = caches[:2] // pip keeps what it has built beside what it has downloaded
			users := caches[0].At
			caches[0].At, caches[0].Lower = cmp.Or(users, o.goCache), []string{users, seed}
		}
	}
	over, set, err := o.layers(caches)
	if set != nil {
		held = append(held, set)
	}
	for _, cache := range over {
		if err == nil && p.Reused && cache.Env == "GOCACHE" {
			err = cache.untested()
		}
	}
	if err != nil {
		for _, f := range held {
			f.Close()
		}
	}
	return over, held, err
}

// layers are caches with a layer over each that is the command's: what they hold need not be made again, and
// what a command writes never reaches them.
//
// Two mounts must not share a layer, so that each command that runs beside others of its workspace has a
// set of its own: the first that is free. The file holds it until it is closed, in the launcher too.
func (o own) layers(caches []overlay) ([]overlay, *os.File, error) {
	var out []overlay
	for _, cache := range caches {
		if cache.Lower == nil {
			cache.Lower = []string{cache.At}
		}
		cache.Lower = slices.DeleteFunc(cache.Lower, func(dir string) bool {
			info, err := os.Stat(dir)
			return err != nil || !info.IsDir()
		})
		if len(cache.Lower) > 0 {
			out = append(out, cache)
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
	return locked(f, false)
}

// locked locks a file; nil where another process has the lock. Without it the file is closed.
func locked(f *os.File, shared bool) (*os.File, error) {
	free, err := files.TryLock(f, shared)
	if free {
		return f, nil
	}
	f.Close()
	return nil, err
}

// within places the layer in a set. Only the layer itself can be written from inside, so that what is
// beside it is what was made here.
func (o *overlay) within(set string) error {
	dir := filepath.Join(set, nameOf(o.At))
	o.Upper, o.Work = filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, d := range []string{o.Upper, o.Work} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	return enterable(o.Upper)
}

// untested has go find no result of a test in what is below its layer, as go clean -testcache does: such a result does
// not follow from the files of the command alone, and says by (cached) that there was one.
func (o overlay) untested() error {
	return files.ReplaceSoon(filepath.Join(o.Upper, "testexpire.txt"), fmt.Appendf(nil, "%d\n", seedTime.UnixNano()))
}

// mount makes the overlay. userxattr is what lets a user without root do it. A file of the user
// is copied into the layer when its time is set, and go sets the time of all that it finds in its cache: volatile spares a
// sync for each of them. A layer holds nothing that could not be made again.
func (o overlay) mount() (int, error) {
	var lower []string
	for _, dir := range o.Lower {
		lower = append(lower, layerName.Replace(dir))
	}
	return newMount("overlay", "lowerdir", strings.Join(lower, ":"), "upperdir", layerName.Replace(o.Upper), "workdir", layerName.Replace(o.Work), "userxattr", "", "volatile", "")
}

// layerName writes a path as an option of overlayfs, where a colon stands between paths.
var layerName = strings.NewReplacer("\\", "\\\\", ":", "\\:")

// marks are the directories that the kernel makes in the working directory of a mount: the innermost says that the
// layer was not synced, and has the next mount refused.
func (o overlay) marks() []string {
	work := o.Work + "/work"
	return []string{work, work + "/incompat", work + "/incompat/volatile"}
}

// clear readies the layers for the next mount.
func (l *launch) clear() error {
	for _, o := range l.Overlays {
		if err := o.clear(); err != nil {
			return fmt.Errorf("layers over the caches: %w", err)
		}
	}
	return nil
}

// letGo gives the layers back. What the kernel made beside them is removed by the next command, while its
// launcher starts.
func (l *launch) letGo() {
	for _, o := range l.Overlays {
		o.unlock()
	}
	for _, f := range l.layers {
		f.Close()
	}
}

// clear removes what the mount before has left.
func (o overlay) clear() error {
	o.unlock()
	marks := o.marks()
	_ = unix.Unlink(marks[2] + "/dirty") // what is not there is not in the way
	for _, dir := range slices.Backward(marks) {
		_ = unix.Rmdir(dir)
	}
	if _, err := os.Lstat(marks[0]); err == nil {
		return workspace.RemoveAll(marks[0]) // it holds more than a mount usually leaves
	}
	return nil
}

// unlock opens the marks to others than root: otherwise the user could not empty the cache.
func (o overlay) unlock() {
	if os.Geteuid() == 0 {
		return
	}
	for _, dir := range o.marks() {
		_ = unix.Chmod(dir, 0o700) // what is not there is not in the way
	}
}
