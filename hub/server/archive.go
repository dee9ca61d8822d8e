package server

import (
	"net/http"
	"time"

	"wf/hub/reply"
)

// mediaCAR is the media type of an archive: https://www.iana.org/assignments/media-types, vnd.ipld.
const mediaCAR = "application/vnd.ipld.car"

// archive sends a run as it is read. A failure behind the first byte breaks the connection off: what came
// until then must not be taken for an archive.
func (s *Server) archive(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	out := &patient{to: w, deadline: http.NewResponseController(w)}
	err := s.Service.Export(r.Context(), runOf(r), out)
	if err != nil && out.begun {
		panic(http.ErrAbortHandler)
	}
	return err
}

// patient writes a body of any length: the client has a while for each piece of it.
type patient struct {
	to       http.ResponseWriter
	deadline *http.ResponseController
	begun    bool
}

func (p *patient) Write(b []byte) (int, error) {
	if !p.begun {
		p.begun = true
		p.to.Header().Set("Content-Type", mediaCAR)
		p.to.Header().Set("Cache-Control", "no-store")
	}
	// Where deadlines cannot be set (a recorder, a stream of a hub) the other end has its own.
	_ = p.deadline.SetWriteDeadline(time.Now().Add(reply.WriteTime))
	return p.to.Write(b)
}
