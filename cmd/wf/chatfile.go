package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/workflows"
)

// chatDefinition is the workflow of a chat. isRun says that the argument names no file: it is
// a run to go on with.
func (a *app) chatDefinition(arg string, last bool) (def compose.Found, isRun bool, err error) {
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
			return def, false, fail(protocol.ErrNotFound, "", "there is no file %s", arg)
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

func (a *app) chatProgram(d compose.Definition) (compose.Found, error) {
	p, err := a.valid(d)
	if err != nil {
		return compose.Found{}, err
	}
	abs, err := filepath.Abs(d.Path)
	if err != nil {
		return compose.Found{}, err
	}
	return compose.Found{Path: abs, Name: p.Workflow.Name, Source: d.Source, Program: p}, nil
}

// historyMax is how many lines of earlier chats are kept.
const historyMax = 500

// readHistory is what the person wrote in earlier chats; where it cannot be read there is none.
func (a *app) readHistory() []string {
	path := chatHistory()
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.Progress("warning: %v", err)
		}
		return nil
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if s, err := strconv.Unquote(strings.TrimSpace(line)); err == nil {
			out = append(out, s)
		}
	}
	return out[max(0, len(out)-historyMax):]
}

// writeHistory adds what was written since to what is kept; chats that ended meanwhile added
// theirs.
func (a *app) writeHistory(lines []string, before int) {
	path := chatHistory()
	if path == "" || len(lines) <= before {
		return
	}
	var b strings.Builder
	all := append(a.readHistory(), lines[before:]...)
	for _, l := range all[max(0, len(all)-historyMax):] {
		b.WriteString(strconv.Quote(l) + "\n")
	}
	if err := replaceFile(path, b.String()); err != nil {
		a.Progress("warning: what you wrote was not kept for the next chat: %v", err)
	}
}

// replaceFile writes a file of the person's own; whoever reads it sees the old content or the
// new one.
func replaceFile(path, text string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// chatHistory is the file of what a person wrote in chats, "" for none.
func chatHistory() string {
	if state := cas.StateDir(os.Getenv); state != "" {
		return state + "/chat_history"
	}
	return ""
}
