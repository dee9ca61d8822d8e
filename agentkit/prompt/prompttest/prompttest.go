// Package prompttest makes records for tests of what follows from them: of prompts, and of the
// agents that are sent them.
package prompttest

import (
	"fmt"
	"strings"

	"wf/protocol"
)

// Tools is a recorded tool list.
const Tools = `[{"description":"d","name":"shell","parameters":{"type":"object"}}]`

// Link is a CID, by name.
func Link(name string) protocol.Link { return protocol.RawLink([]byte(name)) }

// Step is a record named role#visit with parents of that form; "START" is where a run began.
func Step(name string, text string, parents ...string) protocol.Past {
	id, err := protocol.ParseStepID(name)
	if err != nil {
		panic(err)
	}
	p := protocol.Past{CID: Link(name), Role: id.Role, Visit: id.N, Text: text, Status: protocol.StepOK}
	if id.Index >= 0 {
		p.Item = &id.Index
	}
	for _, parent := range parents {
		p.Parents = append(p.Parents, Link(parent))
	}
	return p
}

// PingPong is n visits of a coder, each after a test that failed.
func PingPong(n int) protocol.History {
	h := protocol.History{Format: protocol.Format, Role: "coder", System: "You fix tests.", Inputs: protocol.JSON(`{"package":"./calc"}`)}
	parent := "START"
	for k := 1; k <= n; k++ {
		test := Step(fmt.Sprintf("test#%d", k), fmt.Sprintf("--- FAIL: Test%d <&> %s", k, strings.Repeat("é", 40)), parent)
		test.Data = protocol.JSON(fmt.Sprintf(`{"exit_code":%d}`, k))
		coder := Step(fmt.Sprintf("coder#%d", k), fmt.Sprintf("---\nstatus: done\n---\nTry %d.", k), fmt.Sprintf("test#%d", k))
		coder.EdgePrompt = fmt.Sprintf("The tests fail, round %d.", k)
		if k > 1 {
			coder.Resumes = Link(fmt.Sprintf("coder#%d", k-1))
		}
		h.Past = append(h.Past, test)
		if k == n {
			h.Visit = coder
		} else {
			h.Past = append(h.Past, coder)
		}
		parent = fmt.Sprintf("coder#%d", k)
	}
	return h
}
