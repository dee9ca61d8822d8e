package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"unicode/utf8"

	"wf/protocol/tree"
)

// File is a text file of a tree.
type File struct {
	Name string // relative to the root, with slashes
	Text string
}

// Skipped says why a file is not looked into.
type Skipped struct {
	Name string `json:"file"`
	Why  string `json:"why"`
}

// walker goes through a tree in the order of the names.
type walker struct {
	ctx     context.Context
	root    *os.Root
	file    func(File) error
	skipped []Skipped
}

// Walk calls file for each text file below dir, in the order of their names. Files that are
// left out though git would keep them are returned.
func Walk(ctx context.Context, dir string, file func(File) error) ([]Skipped, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read the files of %s: %w", dir, err)
	}
	defer root.Close()
	w := &walker{ctx: ctx, root: root, file: file}
	if err := w.dir(".", nil); err != nil {
		return w.skipped, fmt.Errorf("read the files of %s: %w", dir, err)
	}
	return w.skipped, nil
}

func (w *walker) dir(name string, ignored *tree.IgnoreList) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	in := name
	if in == "." {
		in = ""
	}
	if text, err := w.root.ReadFile(path.Join(name, ".gitignore")); err == nil {
		ignored = ignored.With(in, text)
	} else if !errors.Is(err, fs.ErrNotExist) {
		w.skip(path.Join(name, ".gitignore"), err.Error())
	}
	entries, err := fs.ReadDir(w.root.FS(), name)
	if err != nil {
		if name == "." {
			return err
		}
		w.skip(name, err.Error())
		return nil
	}
	for _, e := range entries {
		full := path.Join(in, e.Name())
		if ignored.Ignores(full, e.IsDir()) || e.Name() == ".git" || e.Name() == ".wf" {
			continue
		}
		switch {
		case e.IsDir():
			err = w.dir(full, ignored)
		case e.Type().IsRegular():
			err = w.read(full, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) skip(name, why string) { w.skipped = append(w.skipped, Skipped{name, why}) }

func (w *walker) read(name string, e fs.DirEntry) error {
	info, err := e.Info()
	if err == nil && info.Size() > MaxFile {
		w.skip(name, fmt.Sprintf("larger than %d bytes", MaxFile))
		return nil
	}
	var text []byte
	if err == nil {
		text, err = w.root.ReadFile(name)
	}
	switch {
	case err != nil:
		w.skip(name, err.Error())
		return nil
	case len(bytes.TrimSpace(text)) == 0:
		return nil
	case bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text):
		w.skip(name, "no text")
		return nil
	}
	return w.file(File{name, string(text)})
}
