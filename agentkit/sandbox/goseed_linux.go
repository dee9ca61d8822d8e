package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A seed is a cache of go with what GOROOT alone makes: the standard library, or what each test needs of it. It lies
// below the cache of commands that reach a network, which never read what the user has built, and of those whose
// result may be reused, which begin with a cache that no command has written.
//
// It has a directory for each go, beside those of workspaces. Nothing but a confined go that knows no other
// module has written there, and no command can.
type seed struct{ dir, program, line string }

const (
	seedCache = "private/gocache" // below the directory of a seed
	seedDone  = "done"
)

// goSeed is the seed that a line builds with the go in PATH; "" is the directory of none.
func (h host) goSeed(line string) seed {
	program := h.program("go")
	info, err := os.Stat(program)
	if program == "" || err != nil {
		return seed{}
	}
	root, err := privateRoot()
	if err != nil {
		return seed{}
	}
	if root, err = filepath.EvalSymlinks(root); err != nil || inside(root, h.written) {
		return seed{} // commands can write it, where their workspace holds the home directory
	}
	inode := info.Sys().(*syscall.Stat_t).Ino // of every Unix
	cgo, _ := h.lookup("CGO_ENABLED")
	return seed{filepath.Join(root, "go-"+nameOf(fmt.Sprintln(program, info.Size(), info.ModTime().UnixNano(), inode, cgo, line))), program, line}
}

// openSeed opens the largest seed that is whole.
func (h host) openSeed() (string, *os.File, error) {
	for _, line := range []string{seedAll, seedTests} {
		if cache, lock, err := h.goSeed(line).open(); lock != nil || err != nil {
			return cache, lock, err
		}
	}
	return "", nil, nil
}

// open gives the cache of a seed that is whole, and keeps it from being swept until the file is closed;
// "" is none.
func (s seed) open() (string, *os.File, error) {
	if s.dir == "" {
		return "", nil, nil
	}
	if _, err := os.Stat(filepath.Join(s.dir, seedDone)); err != nil {
		return "", nil, nil
	}
	lock, err := lockDir(s.dir)
	if err != nil {
		return "", nil, err
	}
	if _, err := os.Stat(filepath.Join(s.dir, seedDone)); err != nil { // it was swept just now
		lock.Close()
		return "", nil, nil
	}
	return filepath.Join(s.dir, seedCache), lock, nil
}

// seedProgram is the cache of go for a command without mounts, over the one that it writes: the value of
// GOCACHEPROG, what that reads, and what keeps the seed. "" is none.
func (h host) seedProgram(upper string) (program string, reads []string, held []*os.File, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, nil, err
	}
	if self = h.reach(self); self == "" {
		return "", nil, nil, nil // it was removed, or commands can write it
	}
	cache, lock, err := h.openSeed()
	if err != nil || lock == nil {
		return "", nil, nil, err
	}
	return cacheProgram(self, cache, upper), []string{self, cache}, []*os.File{lock}, nil
}

// seedBegin has only the program that the seed is named for and those of the system take part in it: PATH and GOROOT may
// lead where an agent can write.
const seedBegin = `export PATH=/usr/bin:/bin GOFLAGS= GOENV=off GOTOOLCHAIN=local GOPROXY=off GOWORK=off GO111MODULE=on
unset GOROOT
`

// seedTests fills the cache of go with what each test needs, which is most of what commands without a network import.
const seedTests = seedBegin + `echo 'package seed; import _ "testing"' > seed_test.go
"$0" test -run '^$' .`

// seedAll fills the cache of go as later builds, tests and vets will ask for it.
const seedAll = seedBegin + `nice "$0" build std || exit
{ echo 'package seed'; "$0" list -f 'import _ "{{.ImportPath}}"' std | grep -v -e '[/"]internal[/"]' -e '"vendor/'; } > seed_test.go
nice "$0" test -run '^$' . && nice "$0" vet .`

// SeedGo builds the seed for the go in PATH, unless it is there, another process builds it, or there is no
// go: half a minute of two processors, at a low priority. What was built until ctx is done is kept for the
// next call. Where commands cannot be confined it does nothing.
func SeedGo(ctx context.Context) error { return buildSeed(ctx, seedAll, false) }

// SeedTests is SeedGo for what each test needs: ten seconds of two processors, at no lower priority, since commands
// wait for it. Where another process builds it, it waits for that.
func SeedTests(ctx context.Context) error { return buildSeed(ctx, seedTests, true) }

func buildSeed(ctx context.Context, line string, wait bool) error {
	at := probed()
	if !at.tier.Holds {
		return nil
	}
	root, err := privateRoot()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	s := hostOf(os.LookupEnv).goSeed(line)
	if s.dir == "" {
		return nil
	}
	lock, err := lockDir(s.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.MkdirAll(filepath.Join(s.dir, "work"), 0o700); err != nil {
		return err
	}
	only, err := holdSet(s.dir)
	for ; wait && only == nil && err == nil; only, err = holdSet(s.dir) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err != nil || only == nil {
		return err
	}
	defer only.Close()
	if _, err := os.Stat(filepath.Join(s.dir, seedDone)); err == nil {
		return nil
	}
	if err := s.build(ctx, at); err != nil {
		return fmt.Errorf("build the standard library of go for commands: %w", err)
	}
	return nil
}

func (s seed) build(ctx context.Context, at found) error {
	work := filepath.Join(s.dir, "work")
	if err := os.WriteFile(filepath.Join(work, "go.mod"), []byte("module seed\n"), 0o600); err != nil {
		return err
	}
	p := Policy{Workspace: work, Private: filepath.Join(s.dir, "private"), alone: true}
	if _, err := p.hold(); err != nil { // its lock is that of the seed
		return err
	}
	l, err := p.launch(at, []string{"/bin/sh", "-c", s.line, s.program})
	if err != nil {
		return err
	}
	var said bytes.Buffer
	code, err := l.clean(ctx, at.flags(p), &said, &said)
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("exit %d: %s", code, bytes.TrimSpace(said.Bytes()))
	}
	if err := s.age(); err != nil {
		return err
	}
	if err := s.sync(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, seedDone), nil, 0o600)
}

// seedTime is the time of all files of a seed. go removes what was unused for days, and sets the time of what it
// finds, for which the whole file would be copied into the layer: neither happens to what is of the future.
var seedTime = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

func (s seed) age() error {
	return filepath.WalkDir(filepath.Join(s.dir, seedCache), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		return os.Chtimes(path, seedTime, seedTime)
	})
}

// sync writes all files to the disk: a seed that is whole is not looked through again, also after a loss of power.
func (s seed) sync() error {
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Syncfs(int(dir.Fd()))
}
