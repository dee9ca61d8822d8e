package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
	"wf/service/compose"
	"wf/store"
)

const (
	closingAge = 10 * time.Minute    // after which a run that closes without a process is told: a daemon takes it up at once
	cleanupAge = 7 * 24 * time.Hour  // for which always roles that failed are told
	lookedBack = 90 * 24 * time.Hour // what moved last before that is not looked at: a store may have many runs
)

// checkRuns looks at runs that close without a process, and at always roles that failed lately: what they were there to clean up
// may still be there, and the runs that they belong to say done. Nothing is said where there are neither.
func checkRuns(ctx context.Context, u *compose.Setup, now time.Time) (out []api.Checkup) {
	dir, _, err := u.StoreName()
	if err != nil || !compose.HoldsStore(dir) {
		return nil // told with the store
	}
	var left, failed finding
	err = u.WithStore(ctx, func(s store.Store) error {
		heads, err := s.Newest(ctx)
		if err != nil {
			return err
		}
		e := u.Engine(s, nil)
		for _, h := range heads {
			age := now.Sub(time.UnixMicro(h.TS))
			if age > lookedBack {
				break
			}
			run := protocol.RunOf(h.Name)
			st, err := e.State(ctx, run)
			switch {
			case ctx.Err() != nil, protocol.OfStore(err):
				return err
			case err != nil:
				continue // wf verify tells of what is damaged
			}
			part := st.Info.Parent != nil && !st.Info.Forked.Defined() // what drives the run above it drives it
			if age >= closingAge && st.Closes() && !part && !e.Foreign(ctx, h, st) && (st.Status() == protocol.Suspended || e.Driving(ctx, run, st).Idle != "") {
				left.add(fmt.Sprintf("wf resume %s goes on with them", run),
					"%s is to end as %s since %s, and no process goes on with its always roles", run, st.Closing.Status, ago(age))
			}
			i := slices.IndexFunc(st.CleanupFailed(), func(f protocol.CleanupFailed) bool { return f.Code != protocol.SkippedByPerson })
			if i >= 0 && age < cleanupAge {
				f, at := st.CleanupFailed()[i], string(run)
				if f.Step != "" {
					at += ":" + f.Step
				}
				failed.add("wf show "+protocol.ShellWord(at)+" shows why; what it was to clean up may still be there", "%s of %s (%s, %s ago): %s", f.Role, run, st.Program().Workflow.Name, ago(age), f.Message)
			}
		}
		return nil
	})
	if err != nil {
		return []api.Checkup{bad(api.Checkup{Name: "runs"}, err)}
	}
	return append(left.checkup("closing", "cut off while closing"), failed.checkup("cleanup", "with always roles that failed")...)
}

// finding is what several runs have in common.
type finding struct {
	n    int
	text []string
	fix  string // of the first, which is the newest
}

func (f *finding) add(fix, format string, args ...any) {
	if f.n++; f.n == 1 {
		f.fix = fix
	}
	if f.n <= mostLeft {
		f.text = append(f.text, fmt.Sprintf(format, args...))
	}
}

func (f *finding) checkup(name, what string) []api.Checkup {
	if f.n == 0 {
		return nil
	}
	if f.n > mostLeft {
		f.text = append(f.text, fmt.Sprintf("and %d more", f.n-mostLeft))
	}
	return []api.Checkup{{Name: name, State: "note", Text: protocol.Plural(f.n, "run") + " " + what + ": " + strings.Join(f.text, "; "), Fix: f.fix}}
}

// ago is an age in one unit: 12m, 3h, 5d.
func ago(age time.Duration) string {
	switch {
	case age < time.Hour:
		return fmt.Sprintf("%dm", int(age.Minutes()))
	case age < 48*time.Hour:
		return fmt.Sprintf("%dh", int(age.Hours()))
	}
	return fmt.Sprintf("%dd", int(age.Hours()/24))
}
