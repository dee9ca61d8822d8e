package prompt

import (
	"cmp"

	"wf/protocol"
)

// Format 2 is format 1 without headers that have nothing below them: a step that ended well is
// told only where there is something to tell that the edge prompt does not tell already, and
// "What happened since" only where a step is described.

func userV2(u *userParts) string {
	described := *u
	described.since = describedV2(u)
	return userV1(&described)
}

// originalV2 is the message that sets a task.
func originalV2(u *userParts) string {
	since := sinceV1(&userParts{visit: u.visit, since: describedV2(u), past: u.past})
	return cmp.Or(Join(u.visit.EdgePrompt, inputsV1(u.inputs, u.visit.Mentions), since), "(continue)")
}

// describedV2 are the steps that have something to say.
func describedV2(u *userParts) []*protocol.Past {
	var described []*protocol.Past
	for _, step := range u.since {
		known := directV1(u, step) && mentionedV1(u, step)
		if step.Status != protocol.StepOK || !known && bodyV1(step) != "" {
			described = append(described, step)
		}
	}
	return described
}
