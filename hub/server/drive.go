package server

import (
	"net/http"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
)

func (s *Server) start(w http.ResponseWriter, r *http.Request) error {
	var body api.Start
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if err := checkStart(&body); err != nil {
		return err
	}
	run, fresh, err := s.Service.Start(r.Context(), body)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	w.Header().Set("Location", "/v1/runs/"+string(run))
	reply.JSON(w, status, api.Started{Schema: "wf.started/v1", ID: run, Fresh: fresh})
	return nil
}

func accepted(w http.ResponseWriter, status int, run protocol.RunID, step *string) error {
	reply.JSON(w, status, api.Accepted{Schema: "wf.accepted/v1", ID: run, Step: step})
	return nil
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	var body api.Answer
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if body.Step != "" && body.Signal != "" {
		return reply.Badf("step and signal are given; one of them names what waits")
	}
	step, err := s.Service.Answer(r.Context(), runOf(r), body)
	if err != nil {
		return err
	}
	return accepted(w, http.StatusOK, runOf(r), &step)
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	var body api.Cancel
	if err := decode(r, &body, true); err != nil {
		return err
	}
	if err := s.Service.Cancel(r.Context(), runOf(r), body.Reason); err != nil {
		return err
	}
	return accepted(w, http.StatusOK, runOf(r), nil)
}

// plain answers a request that has no body and does one thing to a run.
func plain(do func(*Server, *http.Request) error) func(*Server, http.ResponseWriter, *http.Request) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		var body struct{}
		if err := decode(r, &body, true); err != nil {
			return err
		}
		if err := do(s, r); err != nil {
			return err
		}
		return accepted(w, http.StatusOK, runOf(r), nil)
	}
}

func (s *Server) suspend(r *http.Request) error { return s.Service.Suspend(r.Context(), runOf(r)) }
func (s *Server) compact(r *http.Request) error { return s.Service.Compact(r.Context(), runOf(r)) }

func (s *Server) resume(w http.ResponseWriter, r *http.Request) error {
	var body api.Resume
	if err := decode(r, &body, true); err != nil {
		return err
	}
	if err := s.Service.Resume(r.Context(), runOf(r), body); err != nil {
		return err
	}
	return accepted(w, http.StatusOK, runOf(r), nil)
}

func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	var body api.Fork
	if err := decode(r, &body, false); err != nil {
		return err
	}
	id, err := protocol.ParseStepID(body.Step)
	if err != nil {
		return reply.Badf("step: %v", err)
	}
	body.Step = id.String()
	for role, list := range body.Models {
		if len(list) == 0 {
			return reply.Badf("models[%q] is empty", role)
		}
	}
	if body.With != nil {
		if err := guard.Need(r.Context(), guard.Admin); err != nil {
			return err
		}
	}
	made, err := s.Service.Fork(r.Context(), runOf(r), body)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/runs/"+string(made.ID))
	reply.JSON(w, http.StatusCreated, api.Accepted{Schema: "wf.accepted/v1", ID: made.ID, Seq: made.Seq, Warnings: made.Warnings})
	return nil
}

func (s *Server) message(w http.ResponseWriter, r *http.Request) error {
	var body api.Message
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if body.Source == "" || body.Text == "" {
		return reply.Badf("source and text are wanted: who says what")
	}
	if err := short("source", body.Source, maxName); err != nil {
		return err
	}
	if err := s.Service.Send(r.Context(), runOf(r), body); err != nil {
		return err
	}
	return accepted(w, http.StatusOK, runOf(r), nil)
}
