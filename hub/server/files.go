package server

import (
	"slices"
	"strconv"

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
	list := all.Looks
	if part.After != "" {
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
			list = list[:i]
			break
		}
		size += more
	}
	all.Looks = list
	return all, nil
}

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
	l, err := s.Service.Looks(c.Context(), c.run)
	if err != nil {
		return nil, err
	}
	all, err := l.Files(s.read(c), c.step, before)
	if err != nil {
		return nil, err
	}
	list := all.Files
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
