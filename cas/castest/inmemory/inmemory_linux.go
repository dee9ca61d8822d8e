package inmemory

import (
	"flag"
	"os"

	"golang.org/x/sys/unix"
)

const shared = "/dev/shm"

// TempDirs puts the directories that a test binary and its programs make into memory, unless
// TMPDIR names a place, or benchmarks run, or less than least bytes are free there, or no program
// could be started from there.
func TempDirs() {
	if os.Getenv("TMPDIR") != "" {
		return
	}
	if !flag.Parsed() {
		flag.Parse()
	}
	if bench := flag.Lookup("test.bench"); bench != nil && bench.Value.String() != "" {
		return
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(shared, &fs); err != nil {
		return // there is none
	}
	if fs.Type != unix.TMPFS_MAGIC || fs.Flags&unix.ST_NOEXEC != 0 || int64(fs.Bavail)*fs.Bsize < least || unix.Access(shared, unix.W_OK|unix.X_OK) != nil {
		return
	}
	if err := os.Setenv("TMPDIR", shared); err != nil {
		panic(err)
	}
}
