package proof

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
)

// Options of a proof of a store.
type Options struct {
	cas.VerifyOptions
	Forget bool // take the heads as they are, whatever was seen before
	Mend   bool // drop stored states that differ from their journals
}

// Store proves a store, or one run of it, and notes the heads that it found sound outside of the store. It works on a
// directory whose store no longer opens.
func Store(ctx context.Context, u *compose.Setup, dir string, o Options) (r cas.Report, err error) {
	state := cas.StateDir(os.Getenv)
	if state != "" {
		if o.LastSeen, err = cas.LoadPinnedHeads(state, dir); err != nil {
			return r, err
		}
	}
	var forgotten []string
	own := o.LastSeen.Heads
	if o.Forget {
		forgotten, o.LastSeen = o.LastSeen.Names(o.Run), cas.PinnedHeads{}
	}
	r, err = cas.VerifyDir(ctx, dir, o.VerifyOptions)
	if errors.Is(err, protocol.ErrUnknownRun) {
		return r, protocol.ErrUnknownRun.With("", "no run %q in %s", o.Run, dir)
	}
	if err == nil {
		err = u.RefoldDir(ctx, dir, &r, o.Mend)
	}
	if err != nil {
		return r, err
	}
	if r.OK && state != "" {
		accepted := slices.DeleteFunc(slices.Clone(r.Heads), func(h cas.Head) bool { return !o.Forget || own[h.Name].Seq == 0 })
		err := errors.Join(cas.Forget(ctx, state, dir, forgotten), cas.Adopt(ctx, state, dir, accepted))
		if err = errors.Join(err, cas.SeeFound(ctx, state, dir, r.Heads)); err != nil {
			u.Warn(fmt.Errorf("the heads were not noted outside of the store: %w", err))
		}
	}
	return r, nil
}
