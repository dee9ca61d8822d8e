package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A History is the file of what a person wrote in chats, one quoted text per line; "" keeps nothing.
type History string

// historyMax is how many texts are kept.
const historyMax = 500

// Read is what was written in earlier chats, the oldest first.
func (h History) Read() ([]string, error) {
	if h == "" {
		return nil, nil
	}
	b, err := os.ReadFile(string(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if s, err := strconv.Unquote(strings.TrimSpace(line)); err == nil {
			out = append(out, s)
		}
	}
	return out[max(0, len(out)-historyMax):], err
}

// Add keeps what was written since; chats that ended meanwhile added theirs. A reader of the file sees the old
// content or the new one.
func (h History) Add(texts []string) error {
	if h == "" || len(texts) == 0 {
		return nil
	}
	all, err := h.Read()
	if err != nil {
		return err
	}
	all = append(all, texts...)
	var b strings.Builder
	for _, s := range all[max(0, len(all)-historyMax):] {
		b.WriteString(strconv.Quote(s) + "\n")
	}
	dir := filepath.Dir(string(h))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), string(h))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
