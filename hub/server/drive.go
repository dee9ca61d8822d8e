package server

import (
	"net/http"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
)

func (s *Server) start(c *call, x *api.Start) (any, error) {
	if err := checkStart(x); err != nil {
		return nil, err
	}
	if x.CausedBy == "" {
		x.CausedBy = c.Request.Header.Get(protocol.CausedByHeader)
	}
	if x.Priority != 0 {
		return nil, reply.Badf("priority is for the queue of a hub: this server begins every run at once")
	}
	run, fresh, err := s.Service.Start(c.Context(), *x)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	c.w.Header().Set("Location", "/v1/runs/"+string(run))
	return answer{status, api.Started{Schema: "wf.started/v1", ID: run, Fresh: fresh}}, nil
}

func (s *Server) answer(c *call, x *api.Answer) (any, error) {
	if x.Step != "" && x.Signal != "" {
		return nil, reply.Badf("step and signal are given; one of them names what waits")
	}
	step, err := s.Service.Answer(c.Context(), c.run, *x)
	return api.Accepted{Schema: "wf.accepted/v1", ID: c.run, Step: &step}, err
}

// accepted is the answer to what was done to a run, or err.
func accepted(c *call, err error) (any, error) {
	return api.Accepted{Schema: "wf.accepted/v1", ID: c.run}, err
}

func (s *Server) cancel(c *call, x *api.Cancel) (any, error) {
	return accepted(c, s.Service.Cancel(c.Context(), c.run, x.Reason))
}

func (s *Server) remove(c *call) (any, error) {
	dry, err := c.yes("dry_run")
	if err != nil {
		return nil, err
	}
	return s.Service.Delete(c.Context(), c.run, api.Delete{Why: c.text("why"), DryRun: dry})
}

func (s *Server) suspend(c *call, _ *struct{}) (any, error) {
	return accepted(c, s.Service.Suspend(c.Context(), c.run))
}

func (s *Server) compact(c *call, _ *struct{}) (any, error) {
	return accepted(c, s.Service.Compact(c.Context(), c.run))
}

func (s *Server) resume(c *call, x *api.Resume) (any, error) {
	return accepted(c, s.Service.Resume(c.Context(), c.run, *x))
}

func (s *Server) fork(c *call, x *api.Fork) (any, error) {
	if x.Step != "" {
		id, err := protocol.ParseStepID(x.Step)
		if err != nil {
			return nil, reply.Badf("step: %v", err)
		}
		x.Step = id.String()
	}
	if err := checkModels(x.Models); err != nil {
		return nil, err
	}
	if x.With != nil {
		if err := guard.Need(c.Context(), guard.Admin); err != nil {
			return nil, err
		}
	}
	made, err := s.Service.Fork(c.Context(), c.run, *x)
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", "/v1/runs/"+string(made.ID))
	made.Schema = "wf.accepted/v1"
	return answer{http.StatusCreated, made}, nil
}

func (s *Server) message(c *call, x *api.Message) (any, error) {
	if x.Source == "" || x.Text == "" {
		return nil, reply.Badf("source and text are wanted: who says what")
	}
	if err := short("source", x.Source, maxName); err != nil {
		return nil, err
	}
	return accepted(c, s.Service.Send(c.Context(), c.run, *x))
}
