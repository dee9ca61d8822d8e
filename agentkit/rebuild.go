package agentkit

import (
	"fmt"

	"wf/agentkit/task"
	"wf/protocol"
)

// Rebuild gives the messages of the request that a visit had come to when its transcript
// ended: P_k, and behind it what was said since, compactions included. It is what a process
// that resumes the visit there would send. It asks nobody and runs nothing; a Turn without a
// Transcript gives P_k.
func Rebuild(turn protocol.Turn) ([]protocol.Message, error) {
	prompt, err := BuildMessages(turn.History)
	if err != nil || len(turn.Transcript) == 0 {
		return prompt, err
	}
	v := &visit{
		agent: &Agent{}, turn: &turn, prompt: prompt, list: turn.History.Tools, models: turn.Models,
		used: map[string]bool{}, raw: map[string]string{}, lost: map[string]bool{},
	}
	if task.Offered(v.list) {
		v.task = &taskRun{}
	}
	v.reset()
	if err := v.replay(turn.Transcript); err != nil {
		return nil, fmt.Errorf("transcript of %s: %w", turn.Step, err)
	}
	return v.request(), nil
}
