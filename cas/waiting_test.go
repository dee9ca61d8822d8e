package cas

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A behaviour is what a look shows at each second of a wait.
type behaviour func(at time.Duration) sight

// passedOn hands the store on each second, or commits: its mark changes.
func passedOn(at time.Duration) sight {
	return sight{pid: 1000 + int(at/time.Second)%7, mark: int64(at)}
}

// A store is waited for while those that have it work, whatever time that takes; one that does not go on ends the wait, and one that was
// stopped within 30 s.
func TestHowLongEachKindOfHolderIsWaitedFor(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		holder behaviour
		limit  time.Duration
		over   time.Duration // 0 is within the hour not
		told   []time.Duration
	}{
		"a crowd at work":     {holder: passedOn, told: []time.Duration{time.Second}},
		"one writer at work":  {holder: func(at time.Duration) sight { return sight{pid: 5, mark: int64(at)} }, told: []time.Duration{time.Second}},
		"a slow disk":         {holder: func(at time.Duration) sight { return sight{pid: 5, mark: int64(at / (9 * time.Minute))} }, told: []time.Duration{time.Second}},
		"one that hangs":      {holder: func(time.Duration) sight { return sight{pid: 5} }, over: time.Second + mostSame, told: []time.Duration{time.Second}},
		"one that is stopped": {holder: func(time.Duration) sight { return sight{pid: 5, stopped: true} }, over: time.Second + mostStopped, told: []time.Duration{time.Second}},
		"one that is stopped after a minute": {holder: func(at time.Duration) sight {
			return sight{pid: 5, stopped: at >= time.Minute, mark: int64(min(at, time.Minute))}
		}, over: time.Minute + mostStopped, told: []time.Duration{time.Second, time.Minute}},
		"one that is stopped now and then": {holder: func(at time.Duration) sight {
			return sight{pid: 5, stopped: at/(20*time.Second)%2 == 0, mark: int64(at / (20 * time.Second))}
		}},
		"one that is killed, and a crowd": {holder: func(at time.Duration) sight {
			if at < 5*time.Second {
				return sight{pid: 5}
			}
			return passedOn(at)
		}, told: []time.Duration{time.Second}},
		"an unknown process":            {holder: func(at time.Duration) sight { return sight{mark: int64(at)} }, told: []time.Duration{time.Second}},
		"a limit of the caller's":       {holder: passedOn, limit: 5 * time.Second, over: 5 * time.Second, told: []time.Duration{time.Second}},
		"a limit of less than a second": {holder: passedOn, limit: 300 * time.Millisecond, over: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			v := vigil{limit: c.limit}
			var told []time.Duration
			over := time.Duration(0)
			for at := v.next(0); over == 0 && at <= hour; at += v.next(at) {
				ends, tells := v.look(at, c.holder(at))
				if tells {
					told = append(told, at)
				}
				if ends {
					over = at
				}
			}
			if over != c.over {
				t.Errorf("it is given up after %s, want %s", over, c.over)
			}
			for i, at := range c.told {
				if i >= len(told) || told[i] != at {
					t.Fatalf("the user is told at %v, want %v", told, c.told)
				}
			}
		})
	}
}

// However a holder behaves: a wait ends for one that was stopped for 25 s in a row, for one that did not go on for ten minutes, at the limit,
// and never else; and the user is told of each that lasts a second.
func TestAWaitEndsForWhatDoesNotGoOnAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := vigil{limit: time.Duration(rapid.IntRange(0, 3).Draw(t, "limit")) * 7 * time.Minute}
		var at, stoppedFor, sameFor time.Duration
		s, told := sight{pid: 1}, false
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 9), 1, 60).Draw(t, "what it does") {
			before := s
			switch {
			case n < 4:
				s.mark++
			case n < 6:
				s.stopped = !s.stopped
			case n == 6:
				s = sight{pid: s.pid + 1}
			}
			for range 1 + n*n {
				if s != before {
					stoppedFor, sameFor, before = 0, 0, s
				} else if at > 0 {
					sameFor += lookEvery
					if s.stopped {
						stoppedFor += lookEvery
					}
				}
				at += v.next(at)
				over, tell := v.look(at, s)
				told = told || tell
				want := v.limit > 0 && at >= v.limit || stoppedFor >= mostStopped || sameFor >= mostSame
				if over != want {
					t.Fatalf("after %s (stopped %s, the same %s): over %v, want %v", at, stoppedFor, sameFor, over, want)
				}
				if over {
					return
				}
				if !told {
					t.Fatalf("nothing is told after %s", at)
				}
			}
		}
	})
}

// The one that keeps others out is named, also where it was stopped between the turn and the lock.
func TestASightNamesTheProcess(t *testing.T) {
	for want, s := range map[string]sight{
		"another process":     {},
		"process 7":           {pid: 7},
		"process 7 (stopped)": {pid: 7, stopped: true},
	} {
		if s.String() != want || s.advice() == "" {
			t.Errorf("%q (%s), want %q", s, s.advice(), want)
		}
	}
}
