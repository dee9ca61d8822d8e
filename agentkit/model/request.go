package model

import (
	"context"
	"encoding/json"
	"fmt"

	"wf/protocol"
)

// Request tells a model what the call belongs to. Only models of this module read it.
type Request struct {
	Role  string
	Visit int  // of the record, from 1
	Item  *int // index in a fan-out, or nil

	// Call numbers the model calls of the visit from 0, over all its attempts. It is counted
	// in the journal, so that a process that resumes a visit goes on with the next number.
	Call int

	// Params is the role's params: a canonical JSON object, decimals as strings, or nil.
	Params protocol.JSON
	// ParamsTexts are the JSON pointers of the strings in Params that are no decimals.
	ParamsTexts []string

	// Opaque holds, by index of the message, the provider's own block of an assistant
	// message: a JSON object that the adapter which made it sends back verbatim. Adapters
	// pass over blocks that are not theirs, since a fallback may have changed the model.
	Opaque map[int]string

	// Prompt is how many messages the first request of the visit had: those after it were
	// said since. 0 is not known.
	Prompt int

	// Moved is how many of the messages, the oldest first, were said behind another prefix: a summary has taken the place of a part
	// of it since, or the prompt has changed. What a reply among them holds that is bound to its prefix does not go back.
	Moved int

	// Failed marks, by index of the message, tool results that are errors.
	Failed map[int]bool

	// Summary marks the request for a summary of what precedes its last message. Call then
	// numbers these requests alone. The reply should be text: a model with a prefix cache that does
	// not depend on the choice of tools allows none.
	Summary bool

	// Goal marks the request for the goal of a task: a line of text, without tools. It is made
	// once in a visit.
	Goal bool

	// Reflection marks a turn of the reflection before a compaction: a small context of its
	// own. Call then numbers these requests alone.
	Reflection bool

	// CacheKey is the same for all calls of a role in a run, "" for none.
	CacheKey string
}

// Kept are the members of the provider's own block of a message, nil for none.
func (r *Request) Kept(message int) (members map[string]json.RawMessage, err error) {
	if opaque := r.Opaque[message]; opaque != "" {
		if err = json.Unmarshal([]byte(opaque), &members); err != nil {
			err = fmt.Errorf("the provider's own block is no JSON object: %w", err)
		}
	}
	return members, err
}

type requestKey struct{}

// WithRequest returns a context that carries r.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFrom gives what the call belongs to; ok is false outside of the agent loop.
func RequestFrom(ctx context.Context) (r Request, ok bool) {
	r, ok = ctx.Value(requestKey{}).(Request)
	return r, ok
}
