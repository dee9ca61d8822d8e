package main

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
)

// install writes a program. None is started meanwhile: until it runs, it would hold the file open for writing, and no
// file is run that is open for that.
func install(t *testing.T, path string, from io.Reader) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(to, from)
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// installCopy writes a copy of a program.
func installCopy(t *testing.T, path, of string) {
	t.Helper()
	from, err := os.Open(of)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	install(t, path, from)
}
