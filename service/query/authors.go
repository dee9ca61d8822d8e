package query

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
)

// Committed is a path that a commit changes.
type Committed struct {
	Path     string // from the top of the repository
	Was, Now []byte // nil where it is not there
	Untold   string // why neither is known, such as that it is too large; "" where they are

	begun bool
	left  map[int]bool // lines of Now, counted from 0, that the commit adds and nothing has been told of
	By    []api.Author // that wrote what the commit adds, in the order in which they were found
}

// begin finds the lines that the commit adds.
func (c *Committed) begin() {
	c.begun, c.left = true, map[int]bool{}
	if c.Now == nil || Binary(c.Was) || Binary(c.Now) {
		return
	}
	line := map[int]int{} // of Was, by the offset at which it begins
	n, offset := 0, 0
	for text := range strings.Lines(string(c.Was)) {
		line[offset] = n
		n, offset = n+1, offset+len(text)
	}
	line[offset] = n
	at, before := 0, 0 // lines of Now, and of Was
	for _, e := range udiff.Lines(string(c.Was), string(c.Now)) {
		at += line[e.Start] - before
		for range strings.Lines(e.New) {
			c.left[at] = true
			at++
		}
		before = line[e.End]
	}
}

// Told reports whether nothing is left to find out.
func (c *Committed) Told() bool {
	return c.Untold != "" || c.begun && len(c.left) == 0 && len(c.By) > 0
}

// Authors finds which visits of a run wrote what a commit adds to a path, as far as the looks of the run tell: of the lines that
// none of the runs asked before has written; of what has no added lines, of the whole file, where it is as the run recorded it last.
// Runs are asked from the newest one on; path is where the workspace of this one has it. One that recorded nothing of the path, or no longer has it, tells nothing.
func Authors(read tree.Read, l *api.Looks, path string, c *Committed) error {
	if c.Told() {
		return nil
	}
	if !c.begun {
		c.begin()
	}
	err := c.of(read, l, path)
	if code := protocol.CodeOf(err); code == protocol.ErrUnknownArtifact.Code || code == protocol.ErrNotFound.Code {
		return nil
	}
	return err
}

func (c *Committed) of(read tree.Read, l *api.Looks, path string) error {
	if len(c.left) == 0 {
		by, err := wrote(read, l, path, c.Now)
		if err == nil && len(by) > 0 {
			c.add(l.Run, by)
		}
		return err
	}
	b, err := Blame(read, l, path, c.Now)
	if err != nil {
		return err
	}
	for i, x := range b.Lines {
		if c.left[i] && !slices.Equal(x.By, []string{api.Outside}) {
			delete(c.left, i)
			c.add(l.Run, x.By)
		}
	}
	return nil
}

func (c *Committed) add(run protocol.RunID, by []string) {
	if !slices.ContainsFunc(c.By, func(a api.Author) bool { return a.Run == run && slices.Equal(a.By, by) }) {
		c.By = append(c.By, api.Author{Run: run, By: by})
	}
}

// wrote tells which visits changed a path last, where it is now as the run recorded it last; nothing where it is not, where no
// visit did, or where the run did not change it.
func wrote(read tree.Read, l *api.Looks, path string, now []byte) (by []string, err error) {
	span, err := l.Of("")
	if err != nil {
		return nil, err
	}
	var is tree.Entry
	for i := range span.Shots {
		s := &span.Shots[i]
		e, err := tree.Find(read, s.Root, path)
		if errors.Is(err, protocol.ErrUnknownArtifact) {
			e, err = tree.Entry{}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", path, api.NotKept(l.Run, s.Root, err))
		}
		if e.Mode != is.Mode || e.Link != is.Link || e.Size != is.Size {
			if is, by = e, nil; i > 0 && !slices.Equal(s.By, []string{api.Outside}) {
				by = s.By
			}
		}
	}
	if by == nil || is.Mode == tree.Omitted || (is.Mode == "") != (now == nil) {
		return nil, nil
	}
	if now != nil {
		if is.Mode != tree.File && is.Mode != tree.Exec || is.Size != int64(len(now)) {
			return nil, nil
		}
		text, err := textOf(read, is)
		if err != nil || !bytes.Equal(text, now) {
			return nil, err
		}
	}
	return by, nil
}
