package control

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// indexMax bounds an index that is read, in bytes: some two million files.
const indexMax = 256 << 20

// Tracked reports whether git tracks a path of the workspace, absolute and without links, or anything below it: then commands of
// git, such as switch and stash, write it. What cannot be told is not.
func (e *Eye) Tracked(path string) bool {
	for top := filepath.Dir(path); top != "/"; top = filepath.Dir(top) {
		f := finder{Eye: e, top: top}
		_, dir, err := f.gitDir()
		if err != nil {
			return false
		}
		if dir == "" {
			continue
		}
		paths := e.index(filepath.Join(dir, "index"))
		name := strings.TrimPrefix(path, top+"/")
		if _, found := slices.BinarySearch(paths, name); found {
			return true
		}
		i, _ := slices.BinarySearch(paths, name+"/") // the first file below it
		return i < len(paths) && strings.HasPrefix(paths[i], name+"/")
	}
	return false
}

// keptMax bounds an index that a process keeps for its next look, in bytes.
const keptMax = 32 << 20

// kept is the index that was read last: most commands leave it as it is.
var kept struct {
	sync.Mutex
	file  string
	stamp unix.Stat_t
	paths []string
}

// index is which files git tracks by an index, sorted.
func (e *Eye) index(file string) []string {
	if paths, known := e.indexes[file]; known {
		return paths
	}
	if e.indexes == nil {
		e.indexes = map[string][]string{}
	}
	s, _, _ := e.Lstat(file) // of nothing is read
	s.Atim = unix.Timespec{}
	kept.Lock()
	defer kept.Unlock()
	if kept.file == file && kept.stamp == s {
		e.indexes[file] = kept.paths
		return kept.paths
	}
	var paths []string
	if b, err := e.read(file, indexMax); err == nil {
		paths, _ = readIndex(b) // an index that cannot be read tracks nothing
	}
	if !slices.IsSorted(paths) { // git sorts them
		slices.Sort(paths)
	}
	if e.indexes[file] = paths; s.Size <= keptMax {
		kept.file, kept.stamp, kept.paths = file, s, paths
	}
	return paths
}

var errIndex = errors.New("no index of git")

// readIndex lists the paths of an index of git, of versions 2 to 4 (gitformat-index(5)).
func readIndex(b []byte) ([]string, error) {
	if len(b) < 12 || string(b[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if version < 2 || version > 4 {
		return nil, errIndex
	}
	for _, hash := range []int{20, 32} { // SHA-1, SHA-256: the file does not say which
		if paths, err := readEntries(b[12:], version, count, hash); err == nil {
			return paths, nil
		}
	}
	return nil, errIndex
}

// readEntries lists the paths of entries with hashes of some length.
func readEntries(b []byte, version, count uint32, hash int) (paths []string, err error) {
	last := ""
	for range count {
		flagsAt := 40 + hash
		if len(b) < flagsAt+2 {
			return nil, errIndex
		}
		flags := binary.BigEndian.Uint16(b[flagsAt:])
		at := flagsAt + 2
		if flags&0x4000 != 0 { // extended
			at += 2
		}
		keep := 0
		if version == 4 {
			cut, n := offset(b[min(at, len(b)):])
			if n == 0 || cut > len(last) {
				return nil, errIndex
			}
			at, keep = at+n, len(last)-cut
		}
		if at > len(b) {
			return nil, errIndex
		}
		end := bytes.IndexByte(b[at:], 0)
		if end < 0 {
			return nil, errIndex
		}
		name := last[:keep] + string(b[at:at+end])
		if long := int(flags & 0xfff); name == "" || long < 0xfff && long != len(name) {
			return nil, errIndex
		}
		paths, last = append(paths, name), name
		at += end + 1
		if version < 4 {
			at = (at + 7) &^ 7 // padded to eight bytes, of which one at least is NUL
		}
		b = b[min(at, len(b)):]
	}
	return paths, nil
}

// offset reads a number as git writes it in packs, and how many bytes it has; 0 for none.
func offset(b []byte) (value, n int) {
	for i, c := range b {
		if i > 0 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
		if i == 3 {
			break
		}
	}
	return 0, 0
}
