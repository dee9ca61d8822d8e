package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Schedule starts a workflow by the clock: on: {schedule: …}.
type Schedule struct {
	Cron     string `cbor:"cron" json:"cron"`                             // minute hour day month weekday, or @daily and the like
	Timezone string `cbor:"timezone,omitempty" json:"timezone,omitempty"` // IANA name; "" is UTC
	Overlap  string `cbor:"overlap,omitempty" json:"overlap,omitempty"`   // OverlapSkip or OverlapQueue; "" starts a firing whatever still runs
	CatchUp  string `cbor:"catch_up,omitempty" json:"catch_up,omitempty"` // CatchUpAll or CatchUpNone; "" starts the newest of the firings that were missed
}

// What becomes of a firing while a run of the schedule is open.
const (
	OverlapSkip  = "skip"  // it is left out
	OverlapQueue = "queue" // the newest waits until the run has ended
	OverlapAllow = "allow" // it is started; left out of a definition
)

// What becomes of firings that passed while nothing served the schedule.
const (
	CatchUpLast = "last" // the newest is started; left out of a definition
	CatchUpAll  = "all"  // the newest MaxCatchUp are started
	CatchUpNone = "none"
)

// MaxCatchUp is how many missed firings are started at most.
const MaxCatchUp = 100

// Firings is how the request ids of the firings of a workflow begin; place distinguishes it from others of its name. Where one machine has the store it is the
// path of the file: where an old schedule and a new one agree about a minute, that is one firing. In a store of several it is Schedule.Place, as
// each machine has the file where it likes.
func Firings(workflow, place string) string {
	sum := sha256.Sum256([]byte(place))
	return "schedule/" + workflow + "/" + hex.EncodeToString(sum[:5]) + "/"
}

// Firing is the request id of a firing: the same for the same workflow and minute, in every process.
func Firing(workflow, place string, due time.Time) string {
	return FiringAt(Firings(workflow, place), due)
}

// FiringAt is the request id of a firing that begins as Firings says.
func FiringAt(begins string, due time.Time) string { return begins + due.UTC().Format(time.RFC3339) }

// Place is what a schedule says, for Firings.
func (s Schedule) Place() string { return s.Cron + "\x00" + s.Timezone }

// In is the zone in which the expression is read.
func (s Schedule) In() (*time.Location, error) {
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		return nil, fmt.Errorf("time zone %q: %v: %w", s.Timezone, err, ErrUsage)
	}
	return zone, nil
}

// Firings yields the minutes after from at which the schedule is due, until the last that is not after to.
func (s Schedule) Firings(from, to time.Time) (iter.Seq[time.Time], error) {
	cron, err := ParseCron(s.Cron)
	if err != nil {
		return nil, err
	}
	zone, err := s.In()
	if err != nil {
		return nil, err
	}
	return func(yield func(time.Time) bool) {
		for due := cron.Next(from.In(zone)); !due.IsZero() && !due.After(to) && yield(due); {
			due = cron.Next(due)
		}
	}, nil
}

// Next is the first minute after t at which the schedule is due; the zero time if there is none.
func (s Schedule) Next(t time.Time) (time.Time, error) {
	cron, err := ParseCron(s.Cron)
	if err != nil {
		return time.Time{}, err
	}
	zone, err := s.In()
	if err != nil {
		return time.Time{}, err
	}
	return cron.Next(t.In(zone)), nil
}

// Cron is a cron expression: the minutes at which something is due.
//
//	minute hour day month weekday     0-59 0-23 1-31 1-12 0-7, 0 and 7 are Sunday
//	*  5  1-5  */15  1-31/2  1,15  jan  mon-fri
//	@hourly @daily @weekly @monthly @yearly
//
// Where both day and weekday are restricted, one of them is enough.
type Cron struct {
	minute, hour, day, month, weekday uint64 // bit n is the value n
	anyDay, anyWeekday, anyHour       bool
}

// cronField is a field with its bounds and names.
type cronField struct {
	name     string
	min, max int
	names    []string // of min, min+1, …
}

var cronFields = [5]cronField{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"weekday", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var cronMacros = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// ParseCron reads a cron expression. One that is malformed, or never due, is an error wrapping
// ErrUsage.
func ParseCron(text string) (Cron, error) {
	var c Cron
	bad := func(format string, args ...any) (Cron, error) {
		return c, fmt.Errorf("cron %q: %s: %w", text, fmt.Sprintf(format, args...), ErrUsage)
	}
	expr := text
	if macro, ok := cronMacros[text]; ok {
		expr = macro
	}
	words := strings.Fields(expr)
	if len(words) != len(cronFields) {
		return bad("want 5 fields, minute hour day month weekday, or @daily and the like; got %d", len(words))
	}
	for i, set := range []*uint64{&c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		var err error
		if *set, err = cronFields[i].parse(words[i]); err != nil {
			return bad("%v", err)
		}
	}
	if c.weekday&(1<<7) != 0 {
		c.weekday = c.weekday&^(1<<7) | 1
	}
	c.anyHour, c.anyDay, c.anyWeekday = words[1] == "*", strings.HasPrefix(words[2], "*"), strings.HasPrefix(words[4], "*")
	if c.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return bad("there is no such day")
	}
	return c, nil
}

// parse reads one field: a list of ranges with steps.
func (f cronField) parse(word string) (uint64, error) {
	var set uint64
	for part := range strings.SplitSeq(word, ",") {
		body, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 || n > f.max {
				return 0, fmt.Errorf("%s: %q is no step", f.name, stepText)
			}
			step = n
		}
		from, to := f.min, f.max
		if body != "*" {
			low, high, ranged := strings.Cut(body, "-")
			var err error
			if from, err = f.value(low); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = f.value(high); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
			if to < from {
				return 0, fmt.Errorf("%s: %s runs backwards", f.name, body)
			}
		}
		for v := from; v <= to; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func (f cronField) value(s string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(s, name) {
			return f.min + i, nil
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < f.min || n > f.max || s[0] == '+' || s[0] == '-' {
		return 0, fmt.Errorf("%s: %q is not within %d-%d", f.name, s, f.min, f.max)
	}
	return n, nil
}

// cronHorizon is how many years Next looks ahead: 29 February may be 8 away, and 40 on a certain weekday, which it must
// have where the day is written with a star (*/28).
const cronHorizon = 40

// Next is the first minute after t that is due, in t's location; the zero time if there is
// none. Of a change of clocks: an expression that names hours is due once when they come twice,
// and at the end of a gap that it falls into.
func (c Cron) Next(t time.Time) time.Time {
	last := t.Year() + cronHorizon
	t = t.Truncate(time.Minute).Add(time.Minute)
	for t.Year() <= last {
		switch {
		case c.due(t):
			return t
		case !c.onDay(t.Month(), t.Day(), t.Weekday()):
			next := time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location())
			if !next.After(t) { // the next day has no midnight
				next = t.Add(time.Hour)
			}
			t = next
		case c.hour>>t.Hour()&1 == 0:
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		default:
			t = t.Add(time.Minute)
		}
	}
	return time.Time{}
}

func (c Cron) onDay(month time.Month, day int, weekday time.Weekday) bool {
	d, w := c.day>>day&1 != 0, c.weekday>>weekday&1 != 0
	if !c.anyDay && !c.anyWeekday {
		return c.month>>month&1 != 0 && (d || w)
	}
	return c.month>>month&1 != 0 && d && w
}

func (c Cron) matches(t time.Time) bool {
	return c.minute>>t.Minute()&1 != 0 && c.hour>>t.Hour()&1 != 0 && c.onDay(t.Month(), t.Day(), t.Weekday())
}

// due reports whether a minute is due, changes of clocks minded.
func (c Cron) due(t time.Time) bool {
	if c.anyHour {
		return c.matches(t)
	}
	_, offset := t.Zone()
	if c.matches(t) {
		// The same wall time some hours before means that clocks were put back meanwhile.
		for _, back := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
			if _, before := t.Add(-back).Zone(); before-offset == int(back/time.Second) {
				return false
			}
		}
		return true
	}
	_, before := t.Add(-time.Minute).Zone()
	for gap := offset - before; gap > 0; gap -= 60 {
		// The wall times that were skipped, as if the old offset still held.
		wall := t.Add(-time.Duration(gap) * time.Second).In(time.FixedZone("", offset))
		if c.matches(wall) {
			return true
		}
	}
	return false
}
