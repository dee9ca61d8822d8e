package schedule

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// with is a job that is due every ten minutes.
func with(overlap, catchUp string) Job {
	j := every("t", "*/10 * * * *")
	j.Schedule.Overlap, j.Schedule.CatchUp = overlap, catchUp
	return j
}

func same(t *testing.T, want []string, d *desk) {
	t.Helper()
	if diff := cmp.Diff(want, d.started); diff != "" {
		t.Errorf("− wanted, + started:\n%s", diff)
	}
}

func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		overlap string
		want    []string // of 70 minutes in which each run takes 24
		starts  int      // rounds in which it is restarted meanwhile
	}{
		{"", []string{"00:10 t", "00:20 t", "00:30 t", "00:40 t", "00:50 t", "01:00 t"}, 0},
		{protocol.OverlapSkip, []string{"00:10 t", "00:40 t"}, 0},
		{protocol.OverlapSkip, []string{"00:10 t", "00:40 t"}, 5},             // what was skipped stays so over a restart
		{protocol.OverlapQueue, []string{"00:10 t", "00:30 t", "00:50 t"}, 0}, // of 00:20 and 00:30 the newest waited
		{protocol.OverlapQueue, []string{"00:10 t", "00:30 t", "00:50 t"}, 5},
	} {
		t.Run(fmt.Sprint(test.overlap, test.starts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "schedule.json")
				d := &desk{jobs: []Job{with(test.overlap, "")}, lasts: 24 * time.Minute}
				for range test.starts + 1 {
					run(t, d.runner(path), 69*time.Minute/time.Duration(test.starts+1))
				}
				same(t, test.want, d)
			})
		})
	}
}

func TestAQueuedFiringStartsWhenARunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{jobs: []Job{with(protocol.OverlapQueue, "")}, lasts: 15*time.Minute + time.Second}
		r := d.runner(filepath.Join(t.TempDir(), "schedule.json"))
		time.AfterFunc(25*time.Minute+2*time.Second, r.Wake) // without it the next look would be at 00:26
		run(t, r, 25*time.Minute+3*time.Second)
		same(t, []string{"00:10 t", "00:20 t"}, d)
	})
}

func TestCatchUp(t *testing.T) {
	for _, test := range []struct {
		catchUp, overlap string
		away             time.Duration // after 00:15
		want             []string
	}{
		{"", "", 31 * time.Minute, []string{"00:10 t", "00:40 t"}},
		{protocol.CatchUpNone, "", 31 * time.Minute, []string{"00:10 t"}},
		{protocol.CatchUpNone, "", 27 * time.Minute, []string{"00:10 t", "00:40 t"}},
		{protocol.CatchUpNone, "", 27*time.Minute + time.Second, []string{"00:10 t"}},
		{protocol.CatchUpAll, "", 31 * time.Minute, []string{"00:10 t", "00:20 t", "00:30 t", "00:40 t"}},
		{protocol.CatchUpAll, protocol.OverlapSkip, 31 * time.Minute, []string{"00:10 t", "00:20 t"}},
	} {
		t.Run(fmt.Sprint(test.catchUp, test.overlap, test.away), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "schedule.json")
				d := &desk{jobs: []Job{with(test.overlap, test.catchUp)}, lasts: time.Minute}
				run(t, d.runner(path), 15*time.Minute)
				time.Sleep(test.away)
				run(t, d.runner(path), time.Second)
				run(t, d.runner(path), time.Second)
				same(t, test.want, d)
			})
		})
	}
}

func TestAllQueuedFiringsAreCaughtUpWithOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "schedule.json")
		d := &desk{jobs: []Job{with(protocol.OverlapQueue, protocol.CatchUpAll)}, lasts: 30 * time.Second}
		run(t, d.runner(path), time.Minute)
		time.Sleep(30 * time.Minute)
		r := d.runner(path)
		run(t, r, time.Second)
		same(t, []string{"00:10 t"}, d)
		run(t, r, 150*time.Second)
		same(t, []string{"00:10 t", "00:20 t", "00:30 t"}, d)
	})
}

// Below, at and beyond the bound.
func TestNoMoreThanAHundredFiringsAreCaughtUpWith(t *testing.T) {
	for _, missed := range []int{protocol.MaxCatchUp - 1, protocol.MaxCatchUp, 3*protocol.MaxCatchUp + 1} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "schedule.json")
			d := &desk{jobs: []Job{with("", protocol.CatchUpAll)}}
			run(t, d.runner(path), time.Minute)
			time.Sleep(time.Duration(missed) * 10 * time.Minute)
			run(t, d.runner(path), time.Second)
			run(t, d.runner(path), time.Second)
			if n := len(d.started); n != min(missed, protocol.MaxCatchUp) {
				t.Errorf("of %d firings %d were started", missed, n)
			}
			newest := time.Date(2000, 1, 1, 0, missed*10, 0, 0, time.UTC).Format("15:04") + " t"
			if d.started[len(d.started)-1] != newest {
				t.Errorf("the last one started is %s, not %s", d.started[len(d.started)-1], newest)
			}
		})
	}
}

// A clock that is put back makes nothing due again, neither what was started nor what was left out; one that was wrong
// by more than a day does not keep the schedule from its firings.
func TestAClockPutBackFiresNothing(t *testing.T) {
	for _, test := range []struct {
		back time.Duration
		want []string
	}{
		{time.Minute, []string{"00:10 t", "00:40 t"}},
		{31 * time.Minute, []string{"00:10 t", "00:40 t"}},
		{30 * 24 * time.Hour, []string{"00:10 t", "00:40 t", "01:10 t"}}, // of another day
	} {
		t.Run(test.back.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var off time.Duration
				d := &desk{jobs: []Job{with(protocol.OverlapSkip, "")}, lasts: 25 * time.Minute, clock: func() time.Time { return time.Now().Add(off) }}
				path := filepath.Join(t.TempDir(), "schedule.json")
				r := d.runner(path)
				run(t, r, 41*time.Minute) // started 00:10, left out 00:20 and 00:30, started 00:40
				off = -test.back
				if test.back > putBack { // one that is restarted heals as well as one that runs on
					r = d.runner(path)
				}
				run(t, r, time.Second)
				same(t, []string{"00:10 t", "00:40 t"}, d)
				if test.back > putBack {
					time.Sleep(38 * time.Minute) // until 01:19, when the run of 00:40 is over
					run(t, r, 5*time.Minute)     // leaves 01:20 out
				} else {
					run(t, r, test.back) // the same hours once more
				}
				same(t, test.want, d)
			})
		})
	}
}

// Where the clocks of a zone are put back an hour comes twice; its firings are those of the first time, but for an
// expression that names no hour.
func TestAnHourThatComesTwice(t *testing.T) {
	for _, test := range []struct {
		cron string
		want []string // UTC; the hour from 2 to 3 begins at 00:00 and at 01:00
	}{
		{"30 2 * * *", []string{"2026-10-25T00:30:00Z"}},
		{"30 * * * *", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}},
	} {
		j := every("t", test.cron)
		j.Schedule.Timezone = "Europe/Berlin"
		due, err := j.due(time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 2, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, t := range due {
			ids = append(ids, t.UTC().Format(time.RFC3339))
		}
		if diff := cmp.Diff(test.want, ids); diff != "" {
			t.Errorf("%s: %s", test.cron, diff)
		}
	}
}

// Two processes write to one file, and neither loses what the other one wrote.
func TestProcessesShareWhatTheyHaveSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schedule.json")
	var work sync.WaitGroup
	at := time.Now()
	for p := range 4 {
		work.Go(func() {
			s := &Seen{In: File(path)} // opens the lock anew each time, as another process does
			for i := range 10 {
				key := fmt.Sprint(p, "/", i)
				if _, err := s.Until(key, at); err != nil {
					t.Error(err)
				}
				if err := s.Dealt(Dealt{Key: key, Job: "j", Due: at.Add(time.Minute), Run: protocol.RunID(key)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	s := &Seen{In: File(path)}
	if runs, err := s.Runs("j"); err != nil || len(runs) != 40 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	if until, err := s.Until("3/9", at); err != nil || !until.Equal(at.Add(time.Minute)) {
		t.Error(until, err)
	}
}
