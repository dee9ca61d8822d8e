package main

import (
	"errors"
	"fmt"
	"strings"

	"wf/cmd/internal/render"
	"wf/hub/reply"
	"wf/protocol"
)

// finish reports an error and gives the exit status.
func (a *app) finish(err error) int {
	a.Close()
	status := statusOf(err)
	if err == nil || errors.As(err, new(silent)) {
		return status
	}
	message, hint := messageOf(err), protocol.HintOf(err)
	fmt.Fprintln(a.Err, a.Err.Red("error:")+" "+message)
	if hint != "" {
		fmt.Fprintln(a.Err, a.Err.Bold("fix:")+"   "+hint)
	}
	if a.AsJSON() && !a.Answered {
		code := protocol.CodeOf(err)
		if code == "" {
			code = "error"
		}
		if err := a.Answer(errorJSON{reply.Failure{Schema: reply.ErrorSchema, Code: code, Message: message, Fix: hint}, hint, status}); err != nil {
			fmt.Fprintln(a.Err, "error: "+err.Error())
		}
	}
	return status
}

// errorJSON is wf.error/v1 as servers write it too, with the exit status.
type errorJSON struct {
	reply.Failure
	Hint string `json:"hint"` // Fix, by its older name
	Exit int    `json:"exit"`
}

// silent is an error that the answer has told already; only its exit status is left.
type silent struct{ error }

func (s silent) Unwrap() error { return s.error }

// messageOf is an error as a sentence for people, without control characters.
func messageOf(err error) string {
	return strings.TrimRight(render.Visible(err.Error()), "\n")
}
