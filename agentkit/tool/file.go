package tool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"wf/protocol"
	"wf/roles"
)

// ReadMax is how many bytes of a file one call of read_file gives.
const ReadMax = 50_000

// listMax is how many names one call of list_files gives.
const listMax = 1_000

// inRoot opens the workspace and hands over a path within it. An absolute path is accepted
// where it lies below the workspace.
func inRoot(at Workspace, name string, do func(root *os.Root, name string) Result) (Result, error) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(at.Dir, name)
		if err != nil || !filepath.IsLocal(rel) {
			return failed("%s lies outside of the workspace; use paths relative to it", name), nil
		}
		name = rel
	}
	if name == "" {
		name = "."
	}
	name = path.Clean(filepath.ToSlash(name))
	if !filepath.IsLocal(name) {
		return failed("%s lies outside of the workspace; use paths relative to it", name), nil
	}
	root, err := os.OpenRoot(at.Dir)
	if err != nil {
		return Result{}, fmt.Errorf("open the workspace: %w", err)
	}
	defer root.Close()
	return do(root, name), nil
}

// escapes is how os.Root tells, by no error that it exports, of a link that leads out of it.
const escapes = "path escapes from parent"

// why is an error without the path of the machine.
func why(name string, err error) Result {
	if strings.HasSuffix(err.Error(), escapes) {
		return failed("%s leads outside of the workspace", name)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return failed("%s: %v", name, err)
}

func readFile() Tool {
	return Tool{
		Name:        "read_file",
		Description: text("read_file"),
		Parameters: protocol.JSON(`{"type":"object","required":["path"],"additionalProperties":false,"properties":{` +
			`"path":{"type":"string","description":"file, relative to the workspace"},` +
			`"start_line":{"type":"integer","minimum":1,"description":"first line, from 1"},` +
			`"end_line":{"type":"integer","minimum":1,"description":"last line, included"}}}`),
		ReadOnly: true,
		Run: func(_ context.Context, at Workspace, raw json.RawMessage) (Result, error) {
			var args struct {
				Path  string `json:"path"`
				Start int    `json:"start_line"`
				End   int    `json:"end_line"`
			}
			if err := Decode(raw, &args, "path"); err != nil {
				return failed("%v", err), nil
			}
			return inRoot(at, args.Path, func(root *os.Root, name string) Result {
				return readLines(root, name, max(args.Start, 1), args.End, at)
			})
		},
	}
}

var errIrregular = errors.New("no regular file")

// openRegular opens a file for reading; it does not wait for the other end of a pipe.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readLines streams over the lines, so that the end of a huge file can be read too.
func readLines(root *os.Root, name string, start, end int, at Workspace) Result {
	f, err := openRegular(root, name)
	if err != nil {
		return why(name, err)
	}
	defer f.Close()

	var out bytes.Buffer
	lines := bufio.NewReaderSize(f, 64<<10)
	line, left := 1, int64(0)
	ended := 0 // 1 where the newest line has not begun: what was read last ended one
	var key keyLines
	above := false // a private key that began before start has not ended
	for end == 0 || line <= end {
		part, err := lines.ReadSlice('\n')
		inKey := key.hold(part)
		switch {
		case line < start:
			above = key.open
		case above && inKey:
			if out.Len() == 0 {
				out.WriteString(keyMark)
			}
		default:
			above = false
			keep := min(len(part), 4*ReadMax-out.Len()) // room for what Clean takes away
			out.Write(part[:keep])
			left += int64(len(part) - keep)
		}
		if len(part) > 0 {
			ended = 0
			if part[len(part)-1] == '\n' {
				line, ended = line+1, 1
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return why(name, err)
		}
	}
	if bytes.IndexByte(out.Bytes(), 0) >= 0 {
		return failed("%s is binary", name)
	}
	if start > 1 && start > line-ended {
		return failed("%s has %d lines", name, line-ended)
	}
	s := at.clean(strings.ToValidUTF8(out.String(), "�"))
	if cut := runeCut(s, ReadMax); cut < len(s) || left > 0 {
		next, how := start+strings.Count(s[:cut], "\n"), "go on with start_line %d"
		if next == start {
			how = "line %d is longer than one call gives, search shows parts of it"
		}
		s = fmt.Sprintf("%s\n…[%d more bytes; "+how+"]", s[:cut], left+int64(len(s)-cut), next)
	}
	return Result{Content: s}
}

// runeCut is the largest length ≤ n at which s can be cut without splitting a rune.
func runeCut(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

func writeFile() Tool {
	return Tool{
		Name:        "write_file",
		Description: text("write_file"),
		Parameters: protocol.JSON(`{"type":"object","required":["path","content"],"additionalProperties":false,"properties":{` +
			`"path":{"type":"string","description":"file, relative to the workspace"},` +
			`"content":{"type":"string","description":"the whole content"}}}`),
		Run: func(_ context.Context, at Workspace, raw json.RawMessage) (Result, error) {
			var args struct {
				Path    string `json:"path"`
				Content string `json:"content"`
			}
			if err := Decode(raw, &args, "path", "content"); err != nil {
				return failed("%v", err), nil
			}
			return inRoot(at, args.Path, func(root *os.Root, name string) Result {
				if r := overHidden(root, at, name, args.Content); r.IsError {
					return r
				}
				if err := replace(root, name, args.Content); err != nil {
					return why(name, err)
				}
				return Result{Content: fmt.Sprintf("wrote %d bytes to %s", len(args.Content), name)}
			})
		},
	}
}

// replace writes a file whole: readers see the old content or the new one. Its mode is kept,
// and a symbolic link stays one.
func replace(root *os.Root, name, content string) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	mode := fs.FileMode(0o666)
	info, err := root.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return root.WriteFile(name, []byte(content), mode)
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temp := path.Join(path.Dir(name), "."+path.Base(name)+".wf-tmp")
	if err := root.WriteFile(temp, []byte(content), mode); err != nil {
		return err
	}
	put := func() error {
		if info != nil {
			if err := root.Chmod(temp, mode); err != nil { // what the umask took
				return err
			}
		}
		return root.Rename(temp, name)
	}
	if err := put(); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

func editFile() Tool {
	return Tool{
		Name:        "edit_file",
		Description: text("edit_file"),
		Parameters: protocol.JSON(`{"type":"object","required":["path","old","new"],"additionalProperties":false,"properties":{` +
			`"path":{"type":"string","description":"file, relative to the workspace"},` +
			`"old":{"type":"string","description":"text that occurs exactly once"},` +
			`"new":{"type":"string","description":"what takes its place"}}}`),
		Run: func(_ context.Context, at Workspace, raw json.RawMessage) (Result, error) {
			var args struct {
				Path string `json:"path"`
				Old  string `json:"old"`
				New  string `json:"new"`
			}
			if err := Decode(raw, &args, "path", "old", "new"); err != nil {
				return failed("%v", err), nil
			}
			return inRoot(at, args.Path, func(root *os.Root, name string) Result {
				if r := overHidden(root, at, name, args.New); r.IsError {
					return r
				}
				return edit(root, name, args.Old, args.New)
			})
		},
	}
}

func edit(root *os.Root, name, old, new string) Result {
	f, err := openRegular(root, name)
	if err != nil {
		return why(name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return why(name, err)
	}
	if old == "" {
		return failed("old is empty; write_file creates files")
	}
	text := string(b)
	from, to, n := place(text, old)
	switch {
	case n == 0 && roles.HasMark(old):
		return failed("%s does not hold the text of old: [redacted:…] and [secret:…] stand for other text that you cannot see; take the lines around it", name)
	case n == 0:
		return failed("%s does not hold the text of old; %s", name, nearest(text, old))
	case n > 1:
		return failed("%s holds the text of old %d times; take more lines around it", name, n)
	}
	if err := replace(root, name, text[:from]+withLineEnds(text, from, to, new)+text[to:]); err != nil {
		return why(name, err)
	}
	return Result{Content: "edited " + name}
}

func listFiles() Tool {
	return Tool{
		Name:        "list_files",
		Description: text("list_files"),
		Parameters: protocol.JSON(`{"type":"object","required":["path"],"additionalProperties":false,"properties":{` +
			`"path":{"type":"string","description":"directory, relative to the workspace; . is the workspace"}}}`),
		ReadOnly: true,
		Run: func(_ context.Context, at Workspace, raw json.RawMessage) (Result, error) {
			var args struct {
				Path string `json:"path"`
			}
			if err := Decode(raw, &args, "path"); err != nil {
				return failed("%v", err), nil
			}
			return inRoot(at, args.Path, func(root *os.Root, name string) Result {
				entries, err := fs.ReadDir(root.FS(), name) // sorted by name
				if err != nil {
					return why(name, err)
				}
				return Result{Content: at.clean(names(entries))}
			})
		},
	}
}

func names(entries []fs.DirEntry) string {
	if len(entries) == 0 {
		return "(empty)"
	}
	var b strings.Builder
	for i, e := range entries {
		if i == listMax {
			fmt.Fprintf(&b, "…[%d more]\n", len(entries)-i)
			break
		}
		mark := ""
		switch {
		case e.IsDir():
			mark = "/"
		case e.Type()&fs.ModeSymlink != 0:
			mark = "@"
		}
		b.WriteString(strings.ToValidUTF8(e.Name(), "�") + mark + "\n")
	}
	return b.String()
}
