package render

import (
	"wf/api"
	"wf/protocol"
)

// A Paint colours text for one stream, or leaves it alone.
type Paint struct{ Color bool }

func (p Paint) sgr(code, s string) string {
	if !p.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Bold is a text in bold.
func (p Paint) Bold(s string) string { return p.sgr("1", s) }

// Dim is a text dimmed.
func (p Paint) Dim(s string) string { return p.sgr("2", s) }

// Red is a text in red, as failures.
func (p Paint) Red(s string) string { return p.sgr("31", s) }

// Green is a text in green, as what succeeded.
func (p Paint) Green(s string) string { return p.sgr("32", s) }

// Yellow is a text in yellow, as what waits or warns.
func (p Paint) Yellow(s string) string { return p.sgr("33", s) }

// Cyan is a text in cyan, as names and what goes on.
func (p Paint) Cyan(s string) string { return p.sgr("36", s) }

// status is the sign in front of a run.
func (p Paint) status(s protocol.RunStatus) string {
	switch s {
	case protocol.Done:
		return p.Green("✓")
	case protocol.Failed:
		return p.Red("✗")
	case protocol.Waiting:
		return p.Yellow("⏸")
	case protocol.Suspended:
		return p.Yellow("!")
	case protocol.Cancelled:
		return p.Dim("–")
	}
	return p.Cyan("●")
}

func (p Paint) step(status string) string {
	switch status {
	case string(protocol.StepOK):
		return p.Green("✓")
	case string(protocol.StepFailed):
		return p.Red("✗")
	case string(protocol.StepSkipped):
		return p.Dim("–")
	case "waiting":
		return p.Yellow("⏸")
	case "parked", "retrying", string(api.Interrupted):
		return p.Yellow("!")
	}
	return p.Cyan("●")
}
