package prompt

import "wf/protocol"

// Format 2 is format 1 without headers that have nothing below them: a step that ended well is
// told only where there is something to tell that the edge prompt does not tell already, and
// "What happened since" only where a step is described.

func userV2(u *userParts) string {
	told := *u
	told.since = toldV2(u)
	return userV1(&told)
}

// originalV2 is the message that sets a task.
func originalV2(u *userParts) string {
	text := Join(u.visit.EdgePrompt, inputsV1(u.inputs, u.visit.Mentions), sinceV1(&userParts{visit: u.visit, since: toldV2(u), past: u.past}))
	if text == "" {
		return "(continue)"
	}
	return text
}

// toldV2 are the steps that have something to tell.
func toldV2(u *userParts) []*protocol.Past {
	var told []*protocol.Past
	for _, step := range u.since {
		known := directV1(u, step) && mentionedV1(u, step)
		if step.Status != protocol.StepOK || !known && bodyV1(step) != "" {
			told = append(told, step)
		}
	}
	return told
}
