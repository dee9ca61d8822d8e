package roles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"wf/files"
	"wf/protocol"
	"wf/roles/workspace"
)

// An input is what a command is given to read. It is a file and no pipe: a command that reads none of it
// fails nothing, and one that starts again reads from the beginning.
type input struct {
	turn  string     // path of the file that holds the turn
	stdin *os.File   // that file, or what the role says
	made  []*os.File // that were written for it
	place *workspace.Place
}

// openInput writes the turn, and opens what the command reads from its standard input.
func openInput(turn protocol.Turn, rendered turnJSON) (in *input, err error) {
	sweepOnce.Do(func() { sweepInputs(os.TempDir()) })
	in = &input{}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	own, err := in.put(turnFiles+"*.json", rendered.write)
	if err != nil {
		return nil, fmt.Errorf("turn of %s: %w", turn.Step, err)
	}
	in.turn, in.stdin = own.Name(), own
	switch says := turn.Role.Stdin; {
	case says == nil:
		return in, nil
	case says.File != "":
		return in, errors.Join(own.Close(), in.find(turn))
	}
	text := func(w io.Writer) error { _, err := io.WriteString(w, turn.Stdin.Text); return err }
	if in.stdin, err = in.put(stdinFiles+"*", text); err != nil {
		err = fmt.Errorf("stdin of %s: %w", turn.Step, err)
	}
	return in, errors.Join(own.Close(), err)
}

// put writes a new file that only this user can read, and opens it anew for reading.
func (in *input) put(pattern string, write func(io.Writer) error) (*os.File, error) {
	w, err := newInput(pattern)
	if err != nil {
		return nil, err
	}
	in.made = append(in.made, w)
	if err := write(w); err != nil {
		return nil, err
	}
	return os.Open(w.Name())
}

// find opens the file of the workspace that the role names, which an agent may have written.
func (in *input) find(turn protocol.Turn) (err error) {
	in.stdin = nil
	name := turn.Stdin.File
	path := filepath.Join(turn.Role.Dir, name)
	refused := func(why string) error { return failure("run", "stdin_refused", "", "stdin: file %q %s", name, why) }
	if filepath.IsAbs(name) || !filepath.IsLocal(path) {
		return refused("lies outside of the workspace")
	}
	if in.place, err = workspace.Find(turn.Workspace, "", path, workspace.Read); err == nil {
		in.stdin, err = in.place.Open()
	}
	reserved := (*workspace.ReservedError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return failure("run", "stdin_missing", "", "stdin: no file %q in the workspace", name)
	case errors.As(err, &reserved):
		return refused("belongs to wf")
	case workspace.Outside(err):
		return refused("leads outside of the workspace by a link")
	}
	return refused("cannot be read: " + reason(err))
}

// reason is an error without the path, which names the machine's directories.
func reason(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// close closes what was opened and removes what was written.
func (in *input) close() {
	if in.stdin != nil {
		in.stdin.Close()
	}
	if in.place != nil {
		in.place.Close()
	}
	for _, f := range in.made {
		os.Remove(f.Name())
		_ = files.FreeLock(f) // it is removed
	}
}
