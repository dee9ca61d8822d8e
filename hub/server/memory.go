package server

import (
	"context"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
)

// maxTagsAsked is how many tags a memory is asked for at most.
const maxTagsAsked = 64

func (s *Server) tasks(c *call) (any, error) {
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	return s.Service.Tasks(c.Context(), c.run, part)
}

func (s *Server) scopes(c *call) (any, error) { return s.Service.Scopes(c.Context()) }

func (s *Server) memories(c *call) (any, error) {
	q := api.MemoryQuery{Scope: c.text("scope"), Tags: c.parameters["tag"]}
	if len(q.Tags) > maxTagsAsked {
		return nil, reply.Badf("tag is given %d times, at most %d", len(q.Tags), maxTagsAsked)
	}
	var err error
	for name, to := range map[string]*bool{"all_tags": &q.AllTags, "pinned": &q.Pinned, "oldest": &q.Oldest, "sums": &q.Sums} {
		if *to, err = c.yes(name); err != nil {
			return nil, err
		}
	}
	if q.Part, err = c.part(); err != nil {
		return nil, err
	}
	return s.Service.Memories(c.Context(), q)
}

func (s *Server) memory(c *call) (any, error) {
	id, err := parameters{"memory": {c.PathValue("memory")}}.number("memory", 1, protocol.MaxSafeInt, 0)
	if err != nil {
		return nil, err
	}
	return s.Service.Memory(c.Context(), c.text("scope"), protocol.Seq(id))
}

// toMemory answers a request whose body says what is asked of a memory.
func toMemory[In, Out any](do func(api.Service, context.Context, In) (Out, error)) handler {
	return body(wanted, func(s *Server, c *call, in *In) (any, error) { return do(s.Service, c.Context(), *in) })
}

// reindex tells nobody how far it has come.
func reindex(s api.Service, ctx context.Context, r api.Reindex) (*api.Reindexed, error) {
	return s.Reindex(ctx, r, nil)
}
