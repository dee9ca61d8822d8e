package appear

import (
	"io/fs"
	"path/filepath"

	"wf/protocol"
	"wf/roles/workspace/control"
)

// Sockets are the sockets that lie in the workspace as of the last look, absolute, whether any process listens there or not. Where nothing else is
// found, in .git and .wf, they are looked for only everywhere, which reads all of that. An error says that not all could be read.
func (w *Watch) Sockets(everywhere bool) (out []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	eye, left := control.At(w.root), w.bounds.entries
	w.each(func(d *dir, path func(string) string) {
		for _, name := range d.sockets {
			out = append(out, filepath.Join(w.root, path(name)))
		}
		for _, i := range d.items {
			if everywhere && err == nil && (i.kind == protocol.FoundRepository || i.kind == protocol.FoundStore) {
				err = socketsBelow(eye, filepath.Join(w.root, path(i.name)), &out, &left)
			}
		}
	})
	return out, err
}

// socketsBelow lists the sockets in a directory and below it. left is how many names may still be read.
func socketsBelow(eye *control.Eye, dir string, out *[]string, left *int) error {
	fd, err := openOurs(eye, dir)
	if gone(err) {
		return nil // or no directory
	}
	if err != nil {
		return eye.Unseen(dir, err)
	}
	f := listing(fd)
	defer f.Close()
	var below []string
	err = entries(f, func(e fs.DirEntry) bool {
		*left--
		switch path := filepath.Join(dir, e.Name()); {
		case e.Type()&fs.ModeSocket != 0:
			*out = append(*out, path)
		case e.IsDir():
			below = append(below, path)
		}
		return *left > 0
	})
	if err == nil && *left <= 0 {
		err = errFlood
	}
	if err != nil {
		return eye.Unseen(dir, err)
	}
	for _, dir := range below {
		if err := socketsBelow(eye, dir, out, left); err != nil {
			return err
		}
	}
	return nil
}
