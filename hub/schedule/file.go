package schedule

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"wf/files"
)

// A File is a Note in a file, by its path.
type File string

// mostNoted bounds the file, in bytes.
const mostNoted = 16 << 20

// Change changes the file; see Note.
func (f File) Change(do func([]byte) ([]byte, error)) (err error) {
	path := string(f)
	if err := files.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	lock, err := files.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.FreeLock(lock)) }()
	if err := files.WaitLock(lock, false); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	old, err := files.Read(path, mostNoted)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove it to begin anew", path, err)
	}
	text, err := do(old)
	if err != nil {
		return fmt.Errorf("%s: %w; remove it to begin anew", path, err)
	}
	if text == nil {
		return nil
	}
	return files.Replace(path, append(text, '\n'))
}
