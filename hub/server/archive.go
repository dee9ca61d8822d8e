package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
)

// mediaCAR is the media type of an archive: https://www.iana.org/assignments/media-types, vnd.ipld.
const mediaCAR = "application/vnd.ipld.car"

// archive sends a run as it is read. A failure behind the first byte breaks the connection off: what came
// until then must not be taken for an archive.
func (s *Server) archive(c *call) (any, error) {
	files, err := c.yes("files")
	if err != nil {
		return nil, err
	}
	return nil, send(c, mediaCAR, func(to io.Writer) error {
		return s.Service.Export(c.Context(), c.run, api.ExportOptions{Files: files}, to)
	})
}

// contents tells what an archive holds: a line with the record of its runs, then lines with the CIDs of its blocks.
func (s *Server) contents(c *call) (any, error) {
	files, err := c.yes("files")
	if err != nil {
		return nil, err
	}
	return nil, send(c, mediaLines, func(to io.Writer) error {
		lines := json.NewEncoder(to)
		return s.Service.Contents(c.Context(), c.run, api.ExportOptions{Files: files},
			func(a protocol.Archive) error {
				return lines.Encode(api.ContentsOf(a))
			},
			func(some []protocol.Link) error { return lines.Encode(api.NamesOf(some)) })
	})
}

// parts sends blocks of a run.
func (s *Server) parts(c *call, x *api.BlockNames) (any, error) {
	blocks, err := named(x)
	if err != nil {
		return nil, err
	}
	return nil, send(c, mediaCAR, func(to io.Writer) error { return s.Service.Parts(c.Context(), c.run, blocks, to) })
}

// lacking tells which blocks an archive has to hold, since the store does not have them.
func (s *Server) lacking(c *call, x *api.BlockNames) (any, error) {
	blocks, err := named(x)
	if err != nil {
		return nil, err
	}
	some, err := s.Service.Lacking(c.Context(), blocks)
	return api.LackedBlocks{Schema: "wf.lacking/v1", Blocks: api.NamesOf(some)}, err
}

// named are the blocks that a request names.
func named(x *api.BlockNames) ([]protocol.Link, error) {
	if n := len(x.Blocks); n == 0 || n > api.BlocksMost {
		return nil, reply.Badf("blocks: %d are named; 1 to %d can be at a time", n, api.BlocksMost)
	}
	blocks, err := api.LinksOf(x.Blocks)
	if err != nil {
		err = reply.Badf("blocks: %v", err)
	}
	return blocks, err
}

// mediaLines is JSON, one value a line: https://github.com/ndjson/ndjson-spec.
const mediaLines = "application/x-ndjson"

// trace sends the spans of a run as they are read.
func (s *Server) trace(c *call) (any, error) {
	prompts, err := c.yes("prompts")
	if err != nil {
		return nil, err
	}
	return nil, send(c, mediaLines, func(to io.Writer) error {
		return s.Service.Trace(c.Context(), c.run, api.TraceOptions{Prompts: prompts}, to)
	})
}

// send answers with a body of any length that is written as it is read. A failure behind the first byte breaks the
// connection off.
func send(c *call, media string, write func(io.Writer) error) error {
	out := &patient{to: c.w, media: media, deadline: http.NewResponseController(c.w)}
	err := write(out)
	if err != nil && out.begun {
		panic(http.ErrAbortHandler)
	}
	return err
}

// patient writes a body of any length: the client has a while for each piece of it.
type patient struct {
	media    string
	to       http.ResponseWriter
	deadline *http.ResponseController
	begun    bool
}

// Header and WriteHeader are those of the answer, for http.ServeContent.
func (p *patient) Header() http.Header    { return p.to.Header() }
func (p *patient) WriteHeader(status int) { p.to.WriteHeader(status) }

func (p *patient) Write(b []byte) (int, error) {
	if !p.begun {
		p.begun = true
		p.to.Header().Set("Content-Type", p.media)
		p.to.Header().Set("Cache-Control", "no-store")
	}
	// Where deadlines cannot be set (a recorder, a stream of a hub) the other end has its own.
	_ = p.deadline.SetWriteDeadline(time.Now().Add(reply.WriteTime))
	return p.to.Write(b)
}

// maxArchive is the most bytes of an archive where nothing else is set.
const maxArchive = 4 << 30

// take imports an archive.
func (s *Server) take(c *call) (any, error) {
	if err := short("run", c.text("run"), maxName); err != nil {
		return nil, err
	}
	if media, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err != nil || media != mediaCAR {
		return nil, wrongMedia(c.Request, mediaCAR)
	}
	limit := cmp.Or(s.MaxArchive, maxArchive)
	if c.ContentLength > limit {
		return nil, tooLong(limit)
	}
	body := &upload{from: http.MaxBytesReader(c.w, c.Body, limit)}
	got, err := s.Service.Import(c.Context(), body, api.ImportOptions{Run: protocol.RunID(c.text("run")), Worker: c.text("agent")})
	switch {
	case errors.As(body.err, new(*http.MaxBytesError)):
		return nil, tooLong(limit)
	case body.err != nil:
		return nil, reply.Badf("the archive broke off after %d bytes: %v", body.n, body.err)
	case api.IsArchiveFault(err), errors.Is(err, protocol.ErrInvalidBlock): // the latter is of another system; elsewhere either is a fault of the store
		return answer{http.StatusUnprocessableEntity, reply.FailureOf(err)}, nil
	}
	return got, err
}

func tooLong(limit int64) error {
	return protocol.ErrTooLarge.With("import it on the machine of the store: wf import FILE.car", "the archive has more than %d bytes", limit)
}

// upload keeps why a body could not be read to its end, and how much of it came.
type upload struct {
	from io.Reader
	n    int64
	err  error
}

func (u *upload) Read(b []byte) (int, error) {
	n, err := u.from.Read(b)
	u.n += int64(n)
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}
