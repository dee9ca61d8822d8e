package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
)

// runStatuses are the states a run can be in.
var runStatuses = []string{
	string(protocol.Running), string(protocol.Waiting), string(protocol.Suspended),
	string(protocol.Done), string(protocol.Failed), string(protocol.Cancelled),
}

type lsFlags struct {
	limit    int
	status   string
	tag      string
	workflow string
	all      bool
	text     string         // stands in the id, workflow, title, description or a tag; lower case
	before   protocol.RunID // only runs below this one
}

func newLs(a *app) *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the runs, the one that moved last first",
		Example: `  wf ls
  wf ls --status waiting
  wf ls -o json | jq -r '.items[].id'`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if f.status != "" && !slices.Contains(runStatuses, f.status) {
				return usagef("--status %q: want %s", f.status, strings.Join(runStatuses, ", "))
			}
			if missing, err := a.NoStoreYet(); err != nil || missing {
				if err != nil {
					return err
				}
				return a.lsHere(ctx, nil, f)
			}
			return a.WithStore(ctx, func(s *cas.Store) error {
				rows, unread, err := a.rows(ctx, s, f)
				if err != nil {
					return err
				}
				if len(unread) == 0 || len(rows) > 0 || a.asJSON() {
					err = a.lsHere(ctx, rows, f)
				}
				return errors.Join(err, errors.Join(unread...))
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.limit, "limit", "n", 50, "at most this many, 0 is all")
	flags.StringVar(&f.status, "status", "", "only these: "+strings.Join(runStatuses, ", "))
	flags.StringVar(&f.tag, "tag", "", "only runs with this tag")
	flags.StringVar(&f.workflow, "workflow", "", "only runs of this workflow")
	flags.BoolVar(&f.all, "all", false, "the runs of sub-workflows too")
	return cmd
}

// runRow is a run in wf ls.
type runRow struct {
	ID       protocol.RunID     `json:"id"`
	Workflow string             `json:"workflow"`
	Title    string             `json:"title"`
	Status   protocol.RunStatus `json:"status"`
	api.Driving
	Foreign   bool          `json:"foreign,omitempty"` // it came from elsewhere
	Reason    string        `json:"reason,omitempty"`
	Steps     int           `json:"steps"`
	Started   string        `json:"started"`
	Updated   string        `json:"updated"`
	ActiveMS  int64         `json:"active_ms"`
	Usage     rowUsage      `json:"usage"`
	CostUSD   *float64      `json:"cost_usd"`
	Head      string        `json:"head"`
	Seq       protocol.Seq  `json:"seq"`
	Tags      []string      `json:"tags"`
	RequestID string        `json:"request_id"`
	Parent    *string       `json:"parent"`
	Waiting   []api.Waiting `json:"waiting"`
}

// rowUsage are the tokens of a run, as the state of the run counts them.
type rowUsage struct {
	Calls  int   `json:"calls"`
	Input  int64 `json:"input"`
	Cached int64 `json:"cached"`
	Output int64 `json:"output"`
}

// rows lists the runs that fit, newest first. A run that cannot be read, since it is damaged or of
// a newer wf, hides no other: it is among unread.
func (a *app) rows(ctx context.Context, s *cas.Store, f lsFlags) (out []runRow, unread []error, err error) {
	heads, err := newestRuns(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	e := a.Engine(s, nil)
	out = []runRow{}
	if f.before != "" {
		i := slices.IndexFunc(heads, func(h cas.Head) bool { return protocol.RunOf(h.Name) == f.before })
		if i < 0 {
			return nil, nil, fail(protocol.ErrUnknownRun, "", "no run %q in %s", f.before, s.Dir())
		}
		heads = heads[i+1:]
	}
	for _, h := range heads {
		if f.limit > 0 && len(out) == f.limit {
			break
		}
		st, err := e.State(ctx, protocol.RunOf(h.Name))
		switch {
		case ctx.Err() != nil, errors.Is(err, protocol.ErrBusy), errors.Is(err, protocol.ErrStore):
			return nil, nil, err
		case err != nil:
			unread = append(unread, err)
			continue
		}
		if f.fits(st) && f.found(protocol.RunOf(h.Name), st) {
			row := rowOf(h, st)
			row.Driving = e.Driving(ctx, row.ID, st)
			row.Foreign = e.Foreign(ctx, h, st)
			if cost, _ := e.Cost(st.Totals); cost != nil {
				usd := float64(*cost) / 1e12
				row.CostUSD = &usd
			}
			out = append(out, row)
		}
	}
	return out, unread, nil
}

// picks reports whether only some of the runs are wanted.
func (f lsFlags) picks() bool {
	return f.status != "" || f.tag != "" || f.workflow != "" || f.text != "" || f.before != ""
}

func (f lsFlags) fits(st *engine.State) bool {
	tagged := f.tag == ""
	for _, t := range st.Info.Tags {
		tagged = tagged || t == f.tag
	}
	return tagged && (f.status == "" || string(st.Status()) == f.status) &&
		(f.workflow == "" || st.Program().Workflow.Name == f.workflow) &&
		(f.all || st.Info.Parent == nil)
}

// found reports whether the text that is looked for stands in what a run says of itself. A
// description over 1 KiB lies in a block and is not searched.
func (f lsFlags) found(run protocol.RunID, st *engine.State) bool {
	if f.text == "" || strings.HasPrefix(strings.ToLower(string(run)), f.text) {
		return true
	}
	for _, s := range append([]string{st.Program().Workflow.Name, st.Info.Title, st.Info.Description.S, st.Info.RequestID}, st.Info.Tags...) {
		if strings.Contains(strings.ToLower(s), f.text) {
			return true
		}
	}
	return false
}

func rowOf(h cas.Head, st *engine.State) runRow {
	row := runRow{
		ID: protocol.RunOf(h.Name), Workflow: st.Program().Workflow.Name, Title: st.Info.Title,
		Status: st.Status(), Reason: st.Reason(), Steps: st.Totals.Steps,
		Started: timeText(st.Info.Started), Updated: timeText(st.TS), ActiveMS: st.Totals.Active / 1000,
		Usage: rowUsage{Calls: st.Totals.Calls, Input: st.Totals.Input, Cached: st.Totals.Cached, Output: st.Totals.Output},
		Head:  h.Link.String(), Seq: h.Seq, Tags: st.Info.Tags, RequestID: st.Info.RequestID, Waiting: []api.Waiting{},
	}
	if row.Tags == nil {
		row.Tags = []string{}
	}
	if p := st.Info.Parent; p != nil {
		parent := string(p.Run) + ":" + p.Step
		row.Parent = &parent
	}
	for _, w := range st.Waiting() {
		row.Waiting = append(row.Waiting, api.Waiting{Step: w.Step.String(), Kind: w.Kind, Question: w.Question.S, Choices: orNone(w.Choices), Shown: w.Shown})
	}
	return row
}

func orNone(c []protocol.Choice) []protocol.Choice {
	if c == nil {
		return []protocol.Choice{}
	}
	return c
}

func (a *app) lsRows(rows []runRow, f lsFlags) error {
	switch a.format {
	case "json":
		return a.answer(map[string]any{"schema": "wf.runs/v1", "items": nonNil(rows)})
	case "jsonl":
		for _, r := range rows {
			if err := line(a.out, r); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case len(rows) == 0 && f.picks():
		a.progress("no run is like that; wf ls without flags lists all")
		return nil
	case len(rows) == 0:
		a.progress("no runs; wf run FILE starts one")
		return nil
	}
	return a.runTable(rows)
}

// lsHere is lsRows of the store in use, which people are told, and where other runs are.
func (a *app) lsHere(ctx context.Context, rows []runRow, f lsFlags) error {
	err := a.lsRows(rows, f)
	dir, where, dirErr := a.StoreDir()
	if err = errors.Join(err, dirErr); err != nil || a.asJSON() {
		return err
	}
	if len(rows) == 0 && where == compose.ProjectDir {
		a.tellEarlier(ctx, ".", dir)
	}
	a.progress("store %s (%s)", dir, where)
	return nil
}

func (a *app) runTable(rows []runRow) error {
	p := paint{a.out.color}
	lines := [][]string{{"RUN", "WORKFLOW", "STATUS", "STEPS", "AGE", "TIME", "TOKENS(cached)", "HEAD", ""}}
	for i := range lines[0] {
		lines[0][i] = p.dim(lines[0][i])
	}
	for _, r := range rows {
		lines = append(lines, []string{
			p.bold(string(r.ID)), visible(r.Workflow), r.standing().sign(p) + " " + r.standing().word(), fmt.Sprint(r.Steps),
			age(r.Updated), span(time.Duration(r.ActiveMS) * time.Millisecond), r.Usage.short(), shortCID(r.Head), r.note(),
		})
	}
	return table(a.out, lines)
}

func (r runRow) standing() standing { return standing{r.Status, r.Idle} }

// note is what a run waits for, why it stopped, or what goes on with it.
func (r runRow) note() string {
	switch {
	case r.Foreign && !r.Status.Final() && r.Parent == nil:
		return "from elsewhere: wf store adopt " + string(r.ID)
	case r.Foreign:
		return "from elsewhere"
	case r.Idle != "" && r.Parent != nil:
		return "a part of " + *r.Parent
	case r.Idle != "":
		return "wf resume " + string(r.ID) + " goes on"
	}
	if len(r.Waiting) == 0 {
		return oneLine(r.Reason, 60)
	}
	w := r.Waiting[0]
	if w.Question == "" {
		return "waits for a " + string(w.Kind)
	}
	return `asks: "` + oneLine(w.Question, 50) + `"`
}

// short is the tokens of a run: all of them, and which part of the prompts was cached.
func (u rowUsage) short() string {
	if u.Calls == 0 {
		return "–"
	}
	cached := int64(0)
	if u.Input > 0 {
		cached = 100 * u.Cached / u.Input
	}
	return fmt.Sprintf("%s (%d%%)", thousands(u.Input+u.Output), cached)
}

func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}

func age(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return "?"
	}
	d := time.Since(t)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
