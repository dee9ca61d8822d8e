package server

import (
	"slices"
	"strconv"
	"strings"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
	"wf/protocol/tree"
)

// looks lists what a run recorded of the files of its workspace.
func (s *Server) looks(c *call) (any, error) {
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	all, err := s.Service.Looks(c.Context(), c.run)
	if err != nil {
		return nil, err
	}
	list, own, from := all.Looks, all.Own, 0
	if n, ok := strings.CutPrefix(part.After, ownAfter); ok {
		if from, err = strconv.Atoi(n); err != nil || from < 1 || from >= len(own) {
			return nil, notNext(part.After)
		}
		list, own = nil, own[from:]
	} else if part.After != "" {
		i := slices.IndexFunc(list, func(l api.Look) bool { return strconv.FormatInt(int64(l.Seq), 10) == part.After })
		if i < 0 {
			return nil, notNext(part.After)
		}
		list = list[i+1:]
	}
	size := 0
	for i, l := range list {
		more := len(l.Failed) + 10*len(l.By)
		if part.Full(i, size, more) {
			all.Next = strconv.FormatInt(int64(list[i-1].Seq), 10)
			all.Looks, all.Own = list[:i], nil
			return all, nil
		}
		size += more
	}
	for i, v := range own {
		more := 24 * len(v.Merged)
		if from+i > 0 && part.Full(len(list)+i, size, more) {
			all.Next = ownAfter + strconv.Itoa(from+i)
			own = own[:i]
			break
		}
		size += more
	}
	all.Looks, all.Own = append([]api.Look{}, list...), own
	return all, nil
}

// ownAfter begins the Next behind which visits with own copies follow, in place of looks.
const ownAfter = "own-"

func notNext(after string) error {
	return reply.Badf("after=%.100q: want the next of an earlier answer", after)
}

// files lists the files that a step left, or found.
func (s *Server) files(c *call) (any, error) {
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	before, err := c.yes("before")
	if err != nil {
		return nil, err
	}
	changed, err := c.yes("changed")
	if err != nil {
		return nil, err
	}
	l, err := s.Service.Looks(c.Context(), c.run)
	if err != nil {
		return nil, err
	}
	all, err := l.Files(s.read(c), c.step, before)
	if err != nil {
		return nil, err
	}
	list := all.Files
	if changed {
		list = slices.DeleteFunc(list, func(f api.StepFile) bool { return f.Change == "" })
	}
	if part.After != "" {
		i, found := slices.BinarySearchFunc(list, part.After, func(f api.StepFile, path string) int { return api.ComparePaths(f.Path, path) })
		if !found {
			return nil, notNext(part.After)
		}
		list = list[i+1:]
	}
	size := 0
	for i, f := range list {
		if part.Full(i, size, len(f.Path)) {
			all.Next = list[i-1].Path
			list = list[:i]
			break
		}
		size += len(f.Path)
	}
	all.Files = list
	return all, nil
}

// file sends one file that a step left, or found.
func (s *Server) file(c *call) (any, error) {
	path := c.text("path")
	if path == "" {
		return nil, reply.Badf("path is wanted: that of a file which %s left", c.step)
	}
	before, err := c.yes("before")
	if err != nil {
		return nil, err
	}
	l, err := s.Service.Looks(c.Context(), c.run)
	if err != nil {
		return nil, err
	}
	span, err := l.Of(c.step)
	if err != nil {
		return nil, err
	}
	at := span.At(before)
	e, err := tree.Find(s.read(c), at.Root, path)
	if err != nil {
		return nil, api.NotKept(c.run, at.Root, err)
	}
	return c.file(s.read(c), e, path)
}

// read reads blocks of a tree.
func (s *Server) read(c *call) tree.Read {
	return func(l protocol.Link) ([]byte, error) { return s.Feed.Block(c.Context(), l) }
}
