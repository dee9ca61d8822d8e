package protocol_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"wf/protocol"
)

func TestCronIsDue(t *testing.T) {
	for _, test := range []struct{ cron, zone, from, want string }{
		{"* * * * *", "UTC", "2026-01-05T04:00:30", "2026-01-05T04:01 2026-01-05T04:02"},
		{"0 9 * * 1-5", "UTC", "2026-01-02T09:00:00", "2026-01-05T09:00 2026-01-06T09:00"},
		{"*/20 8-9 * * *", "UTC", "2026-01-02T08:30:00", "2026-01-02T08:40 2026-01-02T09:00 2026-01-02T09:20 2026-01-02T09:40 2026-01-03T08:00"},
		{"30 6 1,15 * *", "UTC", "2026-01-02T00:00:00", "2026-01-15T06:30 2026-02-01T06:30"},
		{"0 0 13 * fri", "UTC", "2026-02-01T00:00:00", "2026-02-06T00:00 2026-02-13T00:00 2026-02-20T00:00"}, // the 13th, and every Friday
		{"0 0 */10 * 5", "UTC", "2026-05-01T00:00:00", "2026-07-31T00:00 2026-08-21T00:00"},                  // * in one of the two: both must hold
		{"0 0 29 2 *", "UTC", "2026-01-01T00:00:00", "2028-02-29T00:00 2032-02-29T00:00"},
		{"0 0 29 FEB *", "UTC", "2097-01-01T00:00:00", "2104-02-29T00:00"},
		{"0 12 * * 7", "UTC", "2026-01-01T00:00:00", "2026-01-04T12:00 2026-01-11T12:00"},
		{"5/20 * * * *", "UTC", "2026-01-01T00:00:00", "2026-01-01T00:05 2026-01-01T00:25 2026-01-01T00:45 2026-01-01T01:05"},
		{"@daily", "America/New_York", "2026-01-01T12:00:00", "2026-01-02T00:00 2026-01-03T00:00"},
		// Clocks are put forward at 2:00 on 29 March 2026, back at 3:00 on 25 October.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00", "2026-03-28T02:30 2026-03-29T03:00 2026-03-30T02:30"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00", "2026-10-25T02:30 2026-10-26T02:30"},
		{"30 * * * *", "Europe/Berlin", "2026-10-25T01:00:00", "2026-10-25T01:30 2026-10-25T02:30 2026-10-25T02:30 2026-10-25T03:30"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00", "2018-11-04T01:00 2018-11-05T00:00"}, // a day without midnight
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00", "2026-10-04T02:30 2026-10-05T02:15"},
	} {
		loc, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		c, err := protocol.ParseCron(test.cron)
		if err != nil {
			t.Error(err)
			continue
		}
		at, err := time.ParseInLocation("2006-01-02T15:04:05", test.from, loc)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range strings.Fields(test.want) {
			at = c.Next(at)
			got = append(got, at.Format("2006-01-02T15:04"))
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s in %s from %s:\nhave %s\nwant %s", test.cron, test.zone, test.from, s, test.want)
		}
	}
}

func TestCronThatIsNone(t *testing.T) {
	for cron, why := range map[string]string{
		"": "5 fields", "* * * *": "got 4", "* * * * * *": "got 6", "@never": "5 fields", "60 * * * *": `minute: "60"`,
		"* 24 * * *": "hour", "* * 0 * *": "day", "* * * 13 *": "month", "* * * * 8": "weekday", "5-1 * * * *": "backwards",
		"*/0 * * * *": "step", "*/x * * * *": "step", "1- * * * *": "minute", "+1 * * * *": "minute", "-1 * * * *": "minute",
		"0 0 31 2 *": "no such day", "0 0 30 feb *": "no such day", "1,,2 * * * *": "minute", "* * * mon *": "month", "/5 * * * *": "minute",
	} {
		if _, err := protocol.ParseCron(cron); !errors.Is(err, protocol.ErrUsage) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %s", cron, err, why)
		}
	}
}

// In UTC, where no clock changes, Next skips nothing that is due and stops at nothing that is
// not: it agrees with looking at every minute.
func TestCronAgreesWithLookingAtEveryMinute(t *testing.T) {
	field := func(least, most int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			n := func() int { return rapid.IntRange(least, most).Draw(t, "n") }
			switch rapid.IntRange(0, 4).Draw(t, "form") {
			case 0:
				return strconv.Itoa(n())
			case 1:
				a, b := n(), n()
				return strconv.Itoa(min(a, b)) + "-" + strconv.Itoa(max(a, b))
			case 2:
				return "*/" + strconv.Itoa(rapid.IntRange(1, 7).Draw(t, "step"))
			case 3:
				return strconv.Itoa(n()) + "," + strconv.Itoa(n())
			}
			return "*"
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		words := []string{field(0, 59).Draw(t, "minute"), field(0, 23).Draw(t, "hour"), field(1, 28).Draw(t, "day"), "*", field(0, 7).Draw(t, "weekday")}
		c, err := protocol.ParseCron(strings.Join(words, " "))
		if err != nil {
			t.Fatal(err)
		}
		from := time.Unix(rapid.Int64Range(1.7e9, 1.8e9).Draw(t, "from"), 0).UTC()
		next := c.Next(from)
		if !next.After(from) || next.Second() != 0 {
			t.Fatalf("%s after %s is %s", words, from, next)
		}
		for at := from.Truncate(time.Minute).Add(time.Minute); at.Before(next.Add(time.Minute)) && at.Before(from.Add(72*time.Hour)); at = at.Add(time.Minute) {
			if said, is := at.Equal(next), fits(words, at); said != is {
				t.Fatalf("%s after %s is %s, but of %s it holds: %v", words, from, next, at, is)
			}
		}
	})
}

// However rare a day is, Next finds the first, as looking at every day does: with a weekday beside every so many days, both
// must hold, and the same weekday is on the same days of a month only every few years.
func TestF214CronAgreesWithLookingAtEveryDay(t *testing.T) {
	one := func(least, most int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(least, most).Draw(t, "n")) })
	}
	stepped := func(least, most int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			from := rapid.IntRange(least, most-1).Draw(t, "from")
			return fmt.Sprintf("%d-%d/%d", from, rapid.IntRange(from+1, most).Draw(t, "to"), rapid.IntRange(1, most).Draw(t, "step"))
		})
	}
	every := rapid.Map(one(1, 31), func(n string) string { return "*/" + n })
	agree := func(t interface{ Fatalf(string, ...any) }, words []string, from time.Time) {
		want := time.Time{}
		midnight := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, time.UTC)
		for at := midnight.AddDate(0, 0, 1); at.Year() <= from.Year()+41 && want.IsZero(); at = at.AddDate(0, 0, 1) {
			if fits(words, at) {
				want = at
			}
		}
		c, err := protocol.ParseCron(strings.Join(words, " "))
		if (err != nil) != want.IsZero() {
			t.Fatalf("%v: %v, and it is due at %s", words, err, want)
		}
		if next := c.Next(from); err == nil && !next.Equal(want) {
			t.Fatalf("%v after %s is %s, not %s", words, from, next, want)
		}
	}
	for _, words := range []string{"0 0 */14 7-10/4 3-5/4", "0 0 */28 2 1", "0 0 */31 * 1", "0 0 29 2 *", "0 0 31 * 0"} {
		for _, year := range []int{2026, 2037, 2072, 2096, 2099} {
			agree(t, strings.Fields(words), time.Date(year, 7, 2, 10, 0, 0, 0, time.UTC))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		day := rapid.OneOf(one(1, 31), stepped(1, 31), every, rapid.Just("*")).Draw(t, "day")
		month := rapid.OneOf(one(1, 12), stepped(1, 12), rapid.Just("*")).Draw(t, "month")
		weekday := rapid.OneOf(one(0, 7), stepped(0, 7), rapid.Just("*")).Draw(t, "weekday")
		agree(t, []string{"0", "0", day, month, weekday}, time.Unix(rapid.Int64Range(1.7e9, 4.2e9).Draw(t, "from"), 0).UTC())
	})
}

// fits is what a cron expression means, word by word.
func fits(words []string, t time.Time) bool {
	in := func(word string, v, least int) bool {
		for _, part := range strings.Split(word, ",") {
			if step, ok := strings.CutPrefix(part, "*/"); ok {
				n, _ := strconv.Atoi(step)
				if (v-least)%n == 0 {
					return true
				}
				continue
			}
			part, step, stepped := strings.Cut(part, "/")
			low, high, ranged := strings.Cut(part, "-")
			from, _ := strconv.Atoi(low)
			to, _ := strconv.Atoi(high)
			n := 1
			if stepped {
				n, _ = strconv.Atoi(step)
			}
			if part == "*" || v == from || ranged && v >= from && v <= to && (v-from)%n == 0 {
				return true
			}
		}
		return false
	}
	day, weekday := in(words[2], t.Day(), 1), in(words[4], int(t.Weekday()), 0) || t.Weekday() == 0 && in(words[4], 7, 0)
	both := day && weekday
	if words[2][0] != '*' && words[4][0] != '*' {
		both = day || weekday
	}
	return both && in(words[3], int(t.Month()), 1) && in(words[0], t.Minute(), 0) && in(words[1], t.Hour(), 0)
}
