package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
