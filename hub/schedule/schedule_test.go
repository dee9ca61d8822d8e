package schedule

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// desk starts firings as a store does: each request id once.
type desk struct {
	jobs    []Job
	started []string // by due time and workflow, in order
	ids     map[string]bool
	fails   int                          // so often starting fails first
	lasts   time.Duration                // of a run; 0 is no time at all
	ends    map[protocol.RunID]time.Time // when a run ends
	clock   func() time.Time
}

func (d *desk) runner(path string) *Runner {
	if d.ids == nil {
		d.ids, d.ends = map[string]bool{}, map[protocol.RunID]time.Time{}
	}
	return &Runner{
		Log:  slog.New(slog.DiscardHandler),
		Seen: &Seen{In: File(path)},
		Now:  d.clock,
		Jobs: func(context.Context) ([]Job, error) { return d.jobs, nil },
		Open: func(_ context.Context, run protocol.RunID) (bool, error) { return time.Now().Before(d.ends[run]), nil },
		Start: func(_ context.Context, f Firing) (protocol.RunID, bool, error) {
			if d.fails > 0 {
				d.fails--
				return "", false, errors.New("the store is busy")
			}
			run, fresh := protocol.RunID(f.RequestID), !d.ids[f.RequestID]
			if fresh {
				d.ids[f.RequestID] = true
				d.ends[run] = time.Now().Add(d.lasts)
				d.started = append(d.started, f.Due.UTC().Format("15:04")+" "+f.Job.Workflow)
			}
			return run, fresh, nil
		},
	}
}

// run runs for a while.
func run(t *testing.T, r *Runner, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func every(name, cron string) Job {
	return Job{Workflow: name, Place: "/w/" + name + ".yaml", Schedule: protocol.Schedule{Cron: cron}}
}

// The clock of a bubble begins at midnight UTC, 2000-01-01.
func TestFiringsStartInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{jobs: []Job{every("half", "*/30 * * * *"), every("one", "0 1 * * *"), every("broken", "x")}}
		r := d.runner(filepath.Join(t.TempDir(), "schedule.json"))
		run(t, r, 100*time.Minute)
		if diff := cmp.Diff([]string{"00:30 half", "01:00 half", "01:00 one", "01:30 half"}, d.started); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOfTheMissedFiringsOnlyTheNewestIsStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "schedule.json")
		d := &desk{jobs: []Job{every("tick", "*/10 * * * *")}}
		run(t, d.runner(path), 15*time.Minute)
		time.Sleep(60 * time.Minute) // nobody runs
		run(t, d.runner(path), time.Minute)
		run(t, d.runner(path), time.Minute) // and once more, at once
		if diff := cmp.Diff([]string{"00:10 tick", "01:10 tick"}, d.started); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatWasDueBeforeAJobWasKnownWasNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "schedule.json")
		time.Sleep(25 * time.Minute)
		d := &desk{jobs: []Job{every("tick", "*/10 * * * *")}}
		r := d.runner(path)
		run(t, r, 2*time.Minute)
		d.jobs[0].Schedule.Cron = "26 * * * *" // another schedule begins anew
		run(t, r, 2*time.Minute)
		d.jobs[0].Schedule.Cron = "30 * * * *"
		run(t, r, 2*time.Minute)
		if diff := cmp.Diff([]string{"00:30 tick"}, d.started); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTwoDaemonsAndARestartStartAFiringOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "schedule.json")
		d := &desk{jobs: []Job{every("tick", "*/10 * * * *")}}
		a, b := d.runner(path), d.runner(path)
		run(t, a, 11*time.Minute)
		run(t, b, 10*time.Minute) // its first look finds the firing of 00:10 due
		run(t, d.runner(path), time.Minute)
		if diff := cmp.Diff([]string{"00:10 tick", "00:20 tick"}, d.started); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAFiringThatCannotStartIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{jobs: []Job{every("tick", "0 * * * *")}, fails: 3}
		r := d.runner(filepath.Join(t.TempDir(), "schedule.json"))
		run(t, r, 70*time.Minute)
		if diff := cmp.Diff([]string{"01:00 tick"}, d.started); diff != "" {
			t.Error(diff)
		}
	})
}

func TestADamagedMemoryIsNamedAndNothingStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schedule.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Seen{In: File(path)}
	if _, err := s.Until("x", time.Now()); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

func TestARequestIDIsMadeOfWorkflowAndMinuteAlone(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	due := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	a := firing(every("tick", "0 9 * * *"), due)
	b := firing(every("tick", "0 10 * * *"), due.In(berlin))
	if a.RequestID != b.RequestID || !strings.HasPrefix(a.RequestID, "schedule/tick/") || !strings.HasSuffix(a.RequestID, "/2026-01-05T09:00:00Z") {
		t.Errorf("%s, %s", a.RequestID, b.RequestID)
	}
	if c := firing(every("tock", "0 9 * * *"), due); c.RequestID == a.RequestID {
		t.Error("two workflows share a request id")
	}
}
