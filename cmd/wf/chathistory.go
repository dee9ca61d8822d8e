package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"wf/cas"
	"wf/files"
)

// A history is the file of what a person wrote in chats, one quoted text per line; "" keeps nothing.
type history string

// chatHistory is that of the user.
func chatHistory() history {
	if state := cas.StateDir(os.Getenv); state != "" {
		return history(filepath.Join(state, "chat_history"))
	}
	return ""
}

// historyMax is how many texts are kept.
const historyMax = 500

// read is what was written in earlier chats, the oldest first.
func (h history) read() ([]string, error) {
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

// add keeps what was written since; chats that ended meanwhile added theirs. A reader of the file sees the old
// content or the new one.
func (h history) add(texts []string) error {
	if h == "" || len(texts) == 0 {
		return nil
	}
	all, err := h.read()
	if err != nil {
		return err
	}
	all = append(all, texts...)
	var b strings.Builder
	for _, s := range all[max(0, len(all)-historyMax):] {
		b.WriteString(strconv.Quote(s) + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(string(h)), 0o700); err != nil {
		return err
	}
	return files.Replace(string(h), []byte(b.String()))
}
