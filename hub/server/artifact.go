package server

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
	"wf/protocol/tree"
)

// MediaFile is the media type of every file that a run keeps: an agent wrote it, and no browser is to show it.
const MediaFile = "application/octet-stream"

// kept is the tree of the files that the step of a call keeps; ok is false where it keeps none.
func (s *Server) kept(c *call) (read tree.Read, root protocol.Link, ok bool, err error) {
	v, err := s.Service.Step(c.Context(), c.run, c.step)
	if err != nil || v.Artifacts == nil {
		return nil, root, false, err
	}
	root, err = protocol.ParseLink(*v.Artifacts)
	return s.read(c), root, true, err
}

// artifacts lists the files that a step keeps, in the order of their tree.
func (s *Server) artifacts(c *call) (any, error) {
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	out := api.Artifacts{Schema: "wf.artifacts/v1", Run: c.run, Artifacts: []api.Artifact{}}
	read, root, ok, err := s.kept(c)
	if err != nil || !ok {
		return out, err
	}
	bytes, behind := 0, part.After == ""
	for it, err := range tree.Walk(read, root) {
		switch {
		case err != nil:
			return nil, fmt.Errorf("artifacts of %s: %w", c.step, err)
		case !behind:
			behind = it.Path == part.After
			continue
		case part.Full(len(out.Artifacts), bytes, len(it.Path)):
			out.Next = out.Artifacts[len(out.Artifacts)-1].Path
			return out, nil
		}
		out.Artifacts, bytes = append(out.Artifacts, api.NewArtifact(c.step, it)), bytes+len(it.Path)
	}
	if !behind {
		return nil, notNext(part.After)
	}
	return out, nil
}

// artifact sends one file that a step keeps. What cannot be read behind the first byte breaks the connection off.
func (s *Server) artifact(c *call) (any, error) {
	path := c.text("path")
	if path == "" {
		return nil, reply.Badf("path is wanted: that of a file which %s keeps", c.step)
	}
	read, root, ok, err := s.kept(c)
	if err != nil {
		return nil, err
	}
	var e tree.Entry
	if ok {
		if e, err = tree.Find(read, root, path); err != nil {
			return nil, fmt.Errorf("artifacts of %s: %w", c.step, err)
		}
	}
	return c.file(read, e, path)
}

// file sends a file of a tree of a step.
func (c *call) file(read tree.Read, e tree.Entry, path string) (any, error) {
	if e.Mode != tree.File && e.Mode != tree.Exec {
		return nil, protocol.ErrUnknownArtifact.With("", "%s of run %s has no file %q", c.step, c.run, path)
	}
	r, err := tree.Open(read, e)
	if err == nil {
		_, err = r.Read(make([]byte, 1)) // while the answer can still be an error
	}
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("files of %s: %q: %w", c.step, path, err)
	}
	h := c.w.Header()
	h.Set("Content-Type", MediaFile)
	h.Set("Content-Disposition", "attachment") // without a name: an agent chose it
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Cache-Control", untilItMoves)
	h.Set("ETag", `"`+e.Link.String()+`"`)
	if !oneRange(c.Request.Header.Get("Range"), e.Size) {
		c.Request.Header.Del("Range") // then all of it is sent
	}
	c.Request.Header.Del("If-Match")
	http.ServeContent(&patient{to: c.w, media: MediaFile, deadline: http.NewResponseController(c.w), begun: true}, c.Request, "", time.Time{}, r)
	return nil, nil
}

// oneRange reports whether a header asks for one range of bytes that content of a size has.
func oneRange(header string, size int64) bool {
	spec, ok := strings.CutPrefix(header, "bytes=")
	from, to, dash := strings.Cut(spec, "-")
	first, err := strconv.ParseUint(from, 10, 63)
	last, err2 := strconv.ParseUint(to, 10, 63)
	switch {
	case !ok || !dash:
		return false
	case from == "": // the last bytes
		return err2 == nil && last > 0 && size > 0
	}
	return err == nil && int64(first) < size && (to == "" || err2 == nil && first <= last)
}
