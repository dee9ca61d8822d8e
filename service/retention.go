package service

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wf/agentkit/config"
	"wf/api"
	"wf/files"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// Expired is a run that the retention of the user's config deletes, and by which of its words.
type Expired struct {
	Run protocol.RunID
	Why string
}

// Expired lists what the user's config deletes at a time, the oldest last. Without retention: there it is nothing. In a
// store that is held the error wraps protocol.ErrHeld.
func (l *Local) Expired(ctx context.Context, now time.Time) ([]Expired, error) {
	r, rows, err := l.retained(ctx)
	if r == nil || err != nil {
		return nil, err
	}
	return expired(*r, rows, now)
}

// retained are the retention of the user's config, nil where there is none, and the runs that it is about.
func (l *Local) retained(ctx context.Context) (*config.Retention, []api.Row, error) {
	c, err := l.Config()
	if err != nil || c.Retention == nil {
		return nil, nil, err
	}
	if err := l.mayRetain(); err != nil {
		return nil, nil, err
	}
	if err := l.Store.MayGoOn(ctx); err != nil { // what was put back from a backup is looked at first
		return nil, nil, err
	}
	rows, _, err := query.Runs(ctx, l.Engine, api.Query{}) // a run that cannot be read stays
	return c.Retention, rows, err
}

// agedFiles chooses the runs whose files are dropped.
func agedFiles(r config.Retention, rows []api.Row, now time.Time) (out []protocol.RunID, err error) {
	after := r.AfterFiles()
	for _, row := range rows {
		if after == 0 || !row.Status.Final() || slices.Contains(row.Tags, config.Keep) {
			continue
		}
		moved, err := time.Parse(time.RFC3339, row.Updated)
		if err != nil {
			return nil, err
		}
		if now.Sub(moved) >= after {
			out = append(out, row.ID)
		}
	}
	return out, nil
}

// RetainFiles drops the files of runs by retention: files: in the user's config, and tells of each run that had some.
func (l *Local) RetainFiles(ctx context.Context, now time.Time, tell func(protocol.RunID, error)) error {
	c, rows, err := l.retained(ctx)
	if c == nil || err != nil || c.AfterFiles() == 0 {
		return err
	}
	runs, err := agedFiles(*c, rows, now)
	if err != nil || len(runs) == 0 {
		return err
	}
	heads, err := l.Store.Heads(ctx, protocol.FilesHead(""))
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, h := range heads {
		kept[h.Name] = true
	}
	for _, run := range runs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !kept[protocol.FilesHead(run)] {
			continue
		}
		there, err := l.Engine.DropFiles(ctx, run)
		if there || err != nil && !errors.Is(err, protocol.ErrRunLive) {
			tell(run, err)
		}
	}
	return nil
}

// mayRetain refuses a config that an agent could have written.
func (l *Local) mayRetain() error {
	at := files.Real(compose.UserConfig())
	places := []string{l.Dir}
	if store := l.Store.Dir(); filepath.Base(store) == ".wf" {
		places = append(places, filepath.Dir(store))
	}
	for _, dir := range places {
		if in, err := filepath.Rel(files.Real(dir), at); dir != "" && err == nil && in != ".." && !strings.HasPrefix(in, ".."+string(filepath.Separator)) {
			return config.ErrConfig.With("keep your config outside of the directories that runs work in", "retention: in %s is not taken: it lies in the workspace %s, where agents write", at, dir)
		}
	}
	return nil
}

// expired chooses among runs, which come the one that moved last first.
func expired(r config.Retention, rows []api.Row, now time.Time) (out []Expired, err error) {
	ended := map[string]int{} // of each workflow
	for _, row := range rows {
		if !row.Status.Final() || row.Parent != nil { // one of a sub-workflow goes with its root
			continue
		}
		ended[row.Workflow]++
		moved, err := time.Parse(time.RFC3339, row.Updated)
		if err != nil {
			return nil, err
		}
		after := r.After(string(row.Status))
		driven := row.Driven != nil && *row.Driven
		if after == 0 || now.Sub(moved) < after || ended[row.Workflow] <= r.KeepLast || driven || slices.Contains(row.Tags, config.Keep) {
			continue
		}
		out = append(out, Expired{row.ID, "retention: " + string(row.Status) + " for more than " + written(after)})
	}
	return out, nil
}

// written is a span in days, where it is some.
func written(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return protocol.Plural(int(d/(24*time.Hour)), "day")
	}
	return d.String()
}

// Retain deletes what has expired, and tells of each run. One that moved, or was deleted, meanwhile is passed over.
func (l *Local) Retain(ctx context.Context, now time.Time, tell func(*api.Deleted, error)) error {
	all, err := l.Expired(ctx, now)
	var gone []protocol.RunID // their words are dropped at once, as files of the index are written anew for that
	for _, x := range all {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		d, err := l.delete(ctx, x.Run, api.Delete{Why: x.Why})
		if d != nil {
			gone = append(gone, d.Runs...)
		}
		if !errors.Is(err, protocol.ErrRunDeleted) && !errors.Is(err, protocol.ErrNotFinal) {
			tell(d, err)
		}
	}
	if len(gone) > 0 {
		err = errors.Join(err, l.purge(ctx, gone))
	}
	return err
}
