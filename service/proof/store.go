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
	"wf/store"
)

// Options of a proof of a store.
type Options struct {
	cas.VerifyOptions
	Forget bool // take the heads as they are, whatever was seen before
	Mend   bool // drop stored states that differ from their journals
}

// Store proves a store, or one run of it, and notes the heads that it found sound outside of the store. It works on a
// directory whose store no longer opens.
func Store(ctx context.Context, u *compose.Setup, name string, o Options) (r cas.Report, err error) {
	if !store.IsDatabase(name) {
		o.Warn = u.Warn
		return prove(ctx, u, name, name, o, func(o cas.VerifyOptions) (cas.Report, error) { return cas.VerifyDir(ctx, name, o) },
			func(r *cas.Report) error { return u.RefoldDir(ctx, name, r, o.Mend) })
	}
	err = u.WithStore(ctx, func(s store.Store) error {
		r, err = prove(ctx, u, s.Dir(), store.Shown(name), o, func(o cas.VerifyOptions) (cas.Report, error) { return store.Verify(ctx, s, o) },
			func(r *cas.Report) error { return u.Refold(ctx, s, r, o.Mend) })
		return err
	})
	return r, err
}

// prove verifies, and then holds what is stored of the journals against them. id tells the store from others in what is noted
// outside of it, shown names it for people.
func prove(ctx context.Context, u *compose.Setup, id, shown string, o Options, verify func(cas.VerifyOptions) (cas.Report, error), refold func(*cas.Report) error) (r cas.Report, err error) {
	state := cas.StateDir(os.Getenv)
	if state != "" {
		if o.LastSeen, err = cas.LoadPinnedHeads(state, id); err != nil {
			return r, err
		}
	}
	var forgotten []string
	own := o.LastSeen.Heads
	if o.Forget {
		forgotten, o.LastSeen = o.LastSeen.Names(o.Run), cas.PinnedHeads{}
	}
	r, err = verify(o.VerifyOptions)
	switch {
	case errors.Is(err, protocol.ErrUnknownRun):
		return r, protocol.ErrUnknownRun.With("", "no run %q in %s", o.Run, shown)
	case err != nil:
		return r, err
	case r.OK:
		err = refold(&r)
	default: // a journal that is not sound has nothing held against it
		r.NotProven = append(r.NotProven, "that the stored states of runs and memories agree with their journals, since there are other findings")
	}
	if err != nil {
		return r, err
	}
	if r.OK && state != "" {
		accepted := slices.DeleteFunc(slices.Clone(r.Heads), func(h cas.Head) bool { return !o.Forget || own[h.Name].Seq == 0 })
		err := errors.Join(cas.Forget(ctx, state, id, forgotten), cas.Adopt(ctx, state, id, accepted))
		if err = errors.Join(err, cas.SeeFound(ctx, state, id, r.Heads)); err != nil {
			u.Warn(fmt.Errorf("the heads were not noted outside of the store: %w", err))
		}
	}
	return r, nil
}
