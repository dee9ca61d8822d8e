package server

import (
	"context"
	"net/http"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
)

// maxTagsAsked is how many tags a memory is asked for at most.
const maxTagsAsked = 64

func (s *Server) tasks(w http.ResponseWriter, r *http.Request) error {
	p, err := query(r, "after", "limit")
	if err != nil {
		return err
	}
	part, err := p.part()
	if err != nil {
		return err
	}
	list, err := s.Service.Tasks(r.Context(), runOf(r), part)
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) task(w http.ResponseWriter, r *http.Request) error {
	step, err := stepOf(r)
	if err != nil {
		return err
	}
	if _, err := query(r); err != nil {
		return err
	}
	t, err := s.Service.Task(r.Context(), runOf(r), step)
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, t)
	return nil
}

// own serves the memories of this store. A request that names a worker is meant for a hub.
func own(handle func(*Server, http.ResponseWriter, *http.Request) error) func(*Server, http.ResponseWriter, *http.Request) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		if r.URL.Query().Has("agent") {
			return reply.Badf("this is no hub, and has the memories of its own store alone: leave --worker out, which is the parameter agent")
		}
		return handle(s, w, r)
	}
}

func (s *Server) scopes(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	list, err := s.Service.Scopes(r.Context())
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) memories(w http.ResponseWriter, r *http.Request) error {
	all := r.URL.Query()
	q := api.MemoryQuery{Tags: all["tag"]} // the one parameter that may be given several times
	delete(all, "tag")
	if len(q.Tags) > maxTagsAsked {
		return reply.Badf("tag is given %d times, at most %d", len(q.Tags), maxTagsAsked)
	}
	p, err := only(all, "scope", "all_tags", "pinned", "oldest", "sums", "after", "limit")
	if err != nil {
		return err
	}
	q.Scope = p.text("scope")
	for name, to := range map[string]*bool{"all_tags": &q.AllTags, "pinned": &q.Pinned, "oldest": &q.Oldest, "sums": &q.Sums} {
		if *to, err = p.yes(name); err != nil {
			return err
		}
	}
	if q.Part, err = p.part(); err != nil {
		return err
	}
	list, err := s.Service.Memories(r.Context(), q)
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) memory(w http.ResponseWriter, r *http.Request) error {
	p, err := query(r, "scope")
	if err != nil {
		return err
	}
	id, err := parameters{"memory": {r.PathValue("memory")}}.number("memory", 1, protocol.MaxSafeInt, 0)
	if err != nil {
		return err
	}
	v, err := s.Service.Memory(r.Context(), p.text("scope"), protocol.Seq(id))
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, v)
	return nil
}

// toMemory answers a request whose body says what is asked of a memory.
func toMemory[In, Out any](do func(api.Service, context.Context, In) (Out, error)) func(*Server, http.ResponseWriter, *http.Request) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		if _, err := query(r); err != nil {
			return err
		}
		var body In
		if err := decode(r, &body, false); err != nil {
			return err
		}
		v, err := do(s.Service, r.Context(), body)
		if err != nil {
			return err
		}
		reply.JSON(w, http.StatusOK, v)
		return nil
	}
}

// reindex tells nobody how far it has come.
func reindex(s api.Service, ctx context.Context, r api.Reindex) (*api.Reindexed, error) {
	return s.Reindex(ctx, r, nil)
}
