package pgtest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// made is the database cluster of which every server has a copy: to make one takes a second, to copy it little. It is there
// as long as some server is.
var made struct {
	sync.Mutex
	program
	users int
}

// copyCluster puts a new database cluster into a directory.
func copyCluster(s *Server) (err error) {
	made.Lock()
	defer made.Unlock()
	if made.users == 0 {
		if made.program, err = newProgram("wf-pg-made-"); err != nil {
			return err
		}
		err := made.perform(filepath.Join(s.bin, "initdb"), "-D", filepath.Join(made.dir, "data"), "-U", "wf", "-A", "trust", "-E", "UTF8", "--locale=C", "--data-checksums", "-N")
		if err != nil {
			return errors.Join(err, os.RemoveAll(made.dir))
		}
	}
	made.users, s.copied = made.users+1, true
	return s.perform("/bin/cp", "-R", "-p", filepath.Join(made.dir, "data"), s.data())
}

// leaveCluster is that a server needs no copy of it any more.
func leaveCluster(s *Server) error {
	made.Lock()
	defer made.Unlock()
	if !s.copied {
		return nil
	}
	if made.users, s.copied = made.users-1, false; made.users > 0 {
		return nil
	}
	return os.RemoveAll(made.dir)
}
