package guard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"wf/api"
	"wf/protocol"
)

// Scope is something that credentials allow.
type Scope string

// The scopes. But for Run and Admin they do not include one another.
const (
	Read Scope = "read" // see runs, blocks, events and memories
	// Run is to start listed workflows, to answer, cancel, resume and fork runs, and to change what agents
	// remember; it includes Answer.
	Run Scope = "run"
	// Answer is to answer what runs ask, and to hand them messages. What they ask includes the approval
	// of what an agent wants to do.
	Answer Scope = "answer"
	// Admin is to let other clients in, and to start runs under any model, local scripts included; it includes
	// Metrics.
	Admin   Scope = "admin"
	Metrics Scope = "metrics" // read GET /metrics
	Worker  Scope = "agent"   // connect to a hub as a worker, and nothing else; no owner has it
)

// AllScopes are the scopes of an owner; Run includes Answer, and Admin Metrics.
var AllScopes = []Scope{Read, Run, Admin}

// Identity is the client of a request.
type Identity struct {
	Name   string // as runs record it: a user, what a token is called, "key 3f2a…"; never a secret
	Scopes []Scope
	// Worker is the only worker id that the credentials may register at a hub; "" binds them to none.
	Worker string

	proof proof
}

// proof is what a client showed to this server. One that another server introduces showed nothing here.
type proof struct {
	own   bool      // it is the own user of this machine, at a socket that checked its peer
	key   string    // sum of the token; of a login, that of the token to which it belongs
	until time.Time // when the login ends; zero for a token
	pace  *pace     // of the requests of the token; nil is no bound
}

// same reports whether two identities allow the same.
func (i Identity) same(other Identity) bool {
	return i.Worker == other.Worker && slices.Equal(i.Scopes, other.Scopes)
}

// holder is who holds what an identity takes. Logins hold what their token does.
func (i Identity) holder() Holder {
	h := Holder{Name: "key " + i.proof.key, Favoured: i.allowsAll()}
	switch {
	case i.proof.own:
		h.Name = "own"
	case i.proof.key == "":
		h.Name = "of " + i.Name // a hub introduced it
	case i.Worker == "" && slices.Equal(i.Scopes, []Scope{Worker}):
		h.Shared = true // by all workers of a hub
	}
	return h
}

// HolderOf is who holds what a request takes; "" for one that was not let in.
func HolderOf(ctx context.Context) Holder {
	id, ok := Of(ctx)
	if !ok {
		return Holder{}
	}
	return id.holder()
}

// Allows reports whether the identity has a scope.
func (i Identity) Allows(s Scope) bool {
	return slices.Contains(i.Scopes, s) || s == Answer && slices.Contains(i.Scopes, Run) || s == Metrics && slices.Contains(i.Scopes, Admin)
}

// allowsAll reports whether the identity is an owner's.
func (i Identity) allowsAll() bool {
	for _, s := range AllScopes {
		if !i.Allows(s) {
			return false
		}
	}
	return true
}

type identityKey struct{}

// With gives a context of a request that was let in as id.
func With(ctx context.Context, id Identity) context.Context {
	ctx = api.WithCaller(ctx, api.Caller{Name: id.Name, Owner: id.Allows(Admin), Runs: id.Allows(Run)})
	return context.WithValue(ctx, identityKey{}, id)
}

// Of is the client of the request of a context; ok is false for a request that was not let in.
func Of(ctx context.Context) (id Identity, ok bool) {
	id, ok = ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// Need is nil if the request of ctx has a scope; else the error wraps
// protocol.ErrUnauthorized, or protocol.ErrForbidden and names the scope.
func Need(ctx context.Context, s Scope) error {
	id, ok := Of(ctx)
	switch {
	case !ok:
		return protocol.ErrUnauthorized
	case !id.Allows(s):
		return fmt.Errorf("%s has no scope %q: %w", id.Name, s, protocol.ErrForbidden)
	}
	return nil
}
