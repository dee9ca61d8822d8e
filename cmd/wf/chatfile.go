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
	"wf/protocol"
	"wf/service/compose"
	"wf/workflows"
)

// chatDefinition is the workflow of a chat. isRun says that the argument names no file: it is
// a run to go on with.
func (a *app) chatDefinition(arg string, last bool) (def compose.Definition, isRun bool, err error) {
	if last {
		if arg != "" {
			return def, false, usagef("--continue goes on with the newest chat, %s names another one", arg)
		}
		return def, true, nil
	}
	if arg == "" {
		src, err := workflows.Files.ReadFile("chat.yaml")
		if err != nil {
			return def, false, err
		}
		d := compose.Definition{Path: "chat.yaml", Source: src}
		a.Load(&d, d.Path)
		def, err = a.chatProgram(d)
		return def, false, err
	}
	path, role := arg, ""
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if p, r, ok := strings.Cut(arg, ":"); ok && isFile(p) {
			path, role = p, r
		} else if strings.ContainsRune(arg, filepath.Separator) || filepath.Ext(arg) != "" {
			return def, false, protocol.ErrNotFound.With("", "there is no file %s", arg)
		} else {
			return def, true, nil
		}
	}
	d, err := a.Read(path)
	if err != nil {
		return def, false, err
	}
	if role != "" {
		if d.Source, err = compose.Conversation(d.Source, role, path); err != nil {
			return def, false, err
		}
		a.Load(&d, path)
	}
	def, err = a.chatProgram(d)
	return def, false, err
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

// chatProgram is a valid definition with its whole path.
func (a *app) chatProgram(d compose.Definition) (compose.Definition, error) {
	_, err := a.valid(d)
	if err == nil {
		d.Path, err = filepath.Abs(d.Path)
	}
	return d, err
}

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
