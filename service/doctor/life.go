package doctor

import (
	"context"
	"fmt"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/store"
)

// backupAge is how old the last backup may be.
const backupAge = 7 * 24 * time.Hour

// checkLife looks at what was deleted and not collected, at the last backup, and whether the store is held. It says
// nothing of a store without any of that.
func checkLife(ctx context.Context, u *compose.Setup, now time.Time) (out []api.Checkup) {
	dir, _, err := u.StoreName()
	if err != nil || !compose.HoldsStore(dir) {
		return nil // told with the store
	}
	err = u.WithStore(ctx, func(s store.Store) error {
		if err := s.MayGoOn(ctx); err != nil {
			out = append(out, api.Checkup{Name: "restored", State: "note", Text: err.Error(), Fix: protocol.HintOf(err)})
		}
		if n, err := s.Uncollected(ctx); err != nil {
			return err
		} else if n > 0 {
			out = append(out, api.Checkup{Name: "deleted", State: "note", Text: fmt.Sprintf("the bytes of %s that %s deleted are still stored", protocol.Plural(n, "run"), were(n)), Fix: "wf gc frees them"})
		}
		dir, ok := s.(*cas.Store)
		if !ok {
			return nil // a database is backed up by its own tools
		}
		last, err := dir.LastBackup()
		if err != nil || last == nil {
			return err
		}
		age := now.Sub(time.UnixMicro(last.At))
		c := api.Checkup{Name: "backup", State: "ok", Text: fmt.Sprintf("%s old, %.1f MB, in %s", age.Round(time.Minute), float64(last.Bytes)/1e6, last.Dir)}
		if age > backupAge {
			c.State, c.Fix = "note", "wf store backup "+protocol.ShellWord(last.Dir)+" adds what is new"
		}
		out = append(out, c)
		return nil
	})
	if err != nil {
		return []api.Checkup{bad(api.Checkup{Name: "backup"}, err)}
	}
	return out
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
