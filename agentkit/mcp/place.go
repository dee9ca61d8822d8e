package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"wf/agentkit/sandbox"
	"wf/protocol"
	"wf/roles/workspace"
)

// A Place is where the program of a server lies, and what its command names of the workspace: what an
// agent may have written, and would run as the user.
type Place struct {
	// Inside are the files and directories of the workspace that the command names, by their paths from
	// the directory in which it starts, sorted.
	Inside []string
	// Confined reports that the program runs within walls.
	Confined bool
	// Files are those of Inside as they are now, for a program that is not confined.
	Files []File

	program string // absolute; "" where there is none
}

// A File is a file that the command of a server names, as the user trusts it.
type File struct {
	Name string `json:"name"`          // from the directory in which the command starts
	Sum  string `json:"sum,omitempty"` // SHA-256 in hexadecimal; "" for one that is not there, or Directory
}

// Directory is the Sum of a directory, whatever lies in it.
const Directory = "directory"

// PlaceOf looks a command up as it would be started in the directory dir of the workspace root, both
// absolute. Only what is there counts, and what by its name is a script or a path from dir.
func PlaceOf(root, dir string, s protocol.MCPServer) (Place, error) {
	if len(s.Command) == 0 {
		return Place{}, nil
	}
	at, err := workspace.Open(root, "")
	if err != nil {
		return Place{}, err
	}
	defer at.Close()
	l := looker{root: root, dir: dir, at: at, env: s.Env, found: map[string]string{}}
	p := Place{program: l.program(s.Command[0])}
	if p.program != "" {
		l.path(p.program, true)
	}
	l.arguments(s.Command)
	for _, v := range s.Env {
		l.words(v.Value)
	}
	p.Inside = slices.Sorted(maps.Keys(l.found))
	p.Confined = s.Sandbox == protocol.SandboxOn || len(p.Inside) > 0 && s.Sandbox != protocol.SandboxOff
	if p.Confined {
		return p, nil
	}
	for _, name := range p.Inside {
		sum, err := sumOf(at, l.found[name])
		if err != nil {
			return p, fmt.Errorf("read %s, which its command names: %w", name, err)
		}
		p.Files = append(p.Files, File{name, sum})
	}
	return p, nil
}

// sumOf is the Sum of a File. No link out of the workspace is followed, and no pipe waited for.
func sumOf(at *os.Root, path string) (string, error) {
	f, err := at.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return Directory, nil
	case !info.Mode().IsRegular():
		return "", errors.New("it is no regular file")
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// A looker gathers what a command names of the workspace.
type looker struct {
	root, dir string
	at        *os.Root // of root
	env       []protocol.MCPValue
	found     map[string]string // path from dir → path from root

	runner runner // of all programs that the command names
	given  bool   // what is run was named before, and lies elsewhere
}

// program is where the program of a command lies, "" where it is not found. What PATH names relative to
// a directory is not looked for, so that it does not depend on where wf was started.
func (l *looker) program(name string) string {
	if strings.Contains(name, "/") {
		return l.absolute(name)
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// absolute is a path as the program finds it. It is not made clean: what lies behind a link is up to the link.
func (l *looker) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return l.dir + "/" + path
}

// path notes a path that leads into the workspace. The workspace itself is what a server works on, and
// counts as named where there is nothing else that is run. sure notes what is not there, too.
func (l *looker) path(path string, sure bool) bool {
	rel, ok := workspace.Through(l.root, l.absolute(path))
	if !ok {
		return false
	}
	if rel == "." {
		if !l.runner.any() || l.given {
			return false
		}
	} else if _, err := l.at.Lstat(rel); err != nil && !sure && !workspace.Outside(err) && !errors.Is(err, fs.ErrPermission) {
		return false
	}
	name, err := filepath.Rel(l.dir, filepath.Join(l.root, rel))
	if err != nil {
		name = rel
	}
	l.found[name] = rel
	return true
}

// arguments notes what the arguments of a command name.
func (l *looker) arguments(command []string) {
	for _, arg := range command {
		for _, word := range split(arg) {
			l.runner = l.runner.and(runnerNamed(filepath.Base(word)))
		}
	}
	for i := 1; i < len(command); i++ {
		arg := command[i]
		l.words(arg)
		if strings.HasPrefix(arg, "-") {
			continue
		}
		if info, err := os.Stat(l.absolute(arg)); err == nil && info.Mode().IsRegular() || l.runner.first || command[i-1] == "-m" {
			l.given = true
		}
	}
	if !l.elsewhere(command) {
		for _, file := range l.runner.projects {
			l.upwards(file)
		}
	}
}

// elsewhere reports whether the project of a command is none of the workspace: by an option that says its directory, or
// since NAME@VERSION is run.
func (l *looker) elsewhere(command []string) bool {
	out := false
	for i, arg := range command {
		option, dir, valued := strings.Cut(arg, "=")
		if !valued && i+1 < len(command) {
			dir = command[i+1]
		}
		if slices.Contains([]string{"-C", "--cwd", "--dir", "--directory", "--project", "--prefix", "--manifest-path"}, option) {
			if _, within := workspace.Through(l.root, l.absolute(os.Expand(dir, l.value))); within {
				return false
			}
			out = true
		}
		if arg == "run" && i > 0 && runnerNamed(filepath.Base(command[0])).pinned {
			rest := slices.DeleteFunc(slices.Clone(command[i+1:]), func(a string) bool { return strings.HasPrefix(a, "-") })
			out = out || len(rest) > 0 && strings.Contains(rest[0], "@")
		}
	}
	return out
}

// words notes what an argument names: as it is, and part by part, as a shell line, NAME=PATH or a list
// of paths has it.
func (l *looker) words(arg string) {
	arg = os.Expand(arg, l.value)
	for _, word := range append(split(arg), arg) {
		if len(word) > 2 && word[0] == '-' && word[1] != '-' {
			word = word[2:] // -I./lib
		}
		if below, ok := strings.CutPrefix(word, "~/"); ok {
			word = l.value("HOME") + "/" + below
		}
		word = strings.TrimPrefix(word, "file://")
		if word == "" || strings.HasPrefix(word, "-") || strings.ContainsAny(word, "\x00\n") {
			continue
		}
		if !l.path(word, l.looksLikeOne(word)) {
			for _, more := range l.runner.finds(word) {
				l.beside(more)
			}
		}
		if l.runner.packages && word[0] != '.' && word[0] != '/' {
			name := word
			if version := strings.LastIndexByte(name, '@'); version > 0 {
				name = name[:version]
			}
			l.upwards(filepath.Join("node_modules", name))
			l.upwards(filepath.Join("node_modules", ".bin", name))
		}
	}
}

// looksLikeOne reports whether a word is a path whatever is there just now: an agent at work could have
// moved it out of the way for the moment.
func (l *looker) looksLikeOne(word string) bool {
	return strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") || !l.runner.packages && slices.Contains(scripts, filepath.Ext(word))
}

// upwards notes what lies in the directory of the command, or in one above it within the workspace.
func (l *looker) upwards(name string) {
	for dir := l.dir; ; dir = filepath.Dir(dir) {
		if l.path(filepath.Join(dir, name), false) || dir == filepath.Dir(dir) {
			return
		}
		if _, ok := workspace.Through(l.root, dir); !ok {
			return
		}
	}
}

// beside notes the files of the workspace with a name and any ending, which interpreters add.
func (l *looker) beside(path string) {
	rel, ok := workspace.Through(l.root, l.absolute(path))
	if !ok || rel == "." {
		return
	}
	if _, err := l.at.Lstat(rel); err == nil {
		l.path(path, false)
	}
	dir, err := l.at.Open(filepath.Dir(rel))
	if err != nil {
		return // no file is found there
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, filepath.Base(rel)+".") {
			l.path(filepath.Join(filepath.Dir(l.absolute(path)), name), false)
		}
	}
}

// value is what a variable is in the environment of the program.
func (l *looker) value(name string) string {
	for _, v := range l.env {
		if v.Name == name {
			return v.Value
		}
	}
	if name == "PWD" {
		return l.dir
	}
	if slices.Contains(sandbox.Allowed, name) {
		return os.Getenv(name)
	}
	return ""
}

// split takes an argument apart at what separates words in shells, options and lists.
func split(arg string) []string {
	return strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'`=:,@{}[]", r) })
}

// outside is an environment without what leads into the workspace in the lists of directories in which programs
// and modules are looked for.
func outside(root string, env []string) []string {
	for i, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if name != "PATH" && name != "NODE_PATH" {
			continue
		}
		kept := slices.DeleteFunc(filepath.SplitList(value), func(dir string) bool {
			_, inside := workspace.Through(root, dir)
			return !filepath.IsAbs(dir) || inside
		})
		env[i] = name + "=" + strings.Join(kept, string(filepath.ListSeparator))
	}
	return env
}

// Why says in a few words what a command names of the workspace.
func (p Place) Why() string {
	if len(p.Inside) == 0 {
		return "it says  sandbox: on"
	}
	more := ""
	if n := len(p.Inside) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("its command names %s%s, which lies in the workspace", p.Inside[0], more)
}
