package server

import (
	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
)

func (s *Server) notifications(c *call) (any, error) {
	part, err := c.part()
	if err == nil {
		err = short("run", c.text("run"), maxName)
	}
	if err != nil {
		return nil, err
	}
	return s.Service.Notifications(c.Context(), api.NotificationQuery{Run: protocol.RunID(c.text("run")), Part: part})
}

// maxRetried is how many ids one request names at most.
const maxRetried = 1000

func (s *Server) retryNotifications(c *call, r *api.RetryNotifications) (any, error) {
	switch {
	case r.All == (len(r.IDs) > 0):
		return nil, reply.Badf("either ids or all is wanted: which notifications are attempted again")
	case len(r.IDs) > maxRetried:
		return nil, reply.Badf("ids has %d of them, at most %d", len(r.IDs), maxRetried)
	}
	for _, id := range r.IDs {
		if id == "" {
			return nil, reply.Badf("ids: an empty one fits all notifications: all says so")
		}
	}
	return s.Service.RetryNotifications(c.Context(), *r)
}

func (s *Server) deletions(c *call) (any, error) {
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	return s.Service.Deletions(c.Context(), part)
}
