package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/protocol"
)

// A Folder keeps the events of long fan-outs, those of more than foldFrom items, out of a stream of
// lines. In their place are a line at the beginning, one for each tenth of the items, and at the end
// how many ended in which way:
//
//	item#1[1000 items]  started
//	item#1[7]  completed ok in 0.0s  k3mau2xq  exit 1
//	item#1[1000 items]  100 of 1000 ended
//	…
//	item#1[1000 items]  completed: 20 exit 1, 980 ok
//
// Of the items only those have lines of their own that failed, ask something or are tried again, oddMax
// of each fan-out at most: which ones, the order decides in which they come. The first that is left out
// has a line which says so, since a fan-out with items that ask does not end by itself.
// The zero value folds; a nil folder folds nothing.
type Folder struct {
	fans map[string]*foldedFan
}

type foldedFan struct {
	of    int
	ended map[string]string // how each item ended, by step
	told  int               // tenths that have a line
	odd   int
}

// NewFolder is a folder, or nil where all items are wanted.
func (p *Printer) NewFolder() *Folder {
	if p.All {
		return nil
	}
	return &Folder{}
}

// take reports whether an event has a line of its own, and gives the lines about its fan-out that
// come before and after it. exit is "exit 1" for the end of a command, "" for others.
func (f *Folder) take(e *protocol.Entry, d protocol.Data, exit func(protocol.StepCompleted) string) (own bool, before, behind []string) {
	if f == nil {
		return true, nil, nil
	}
	step := e.StepName()
	name, _, item := strings.Cut(step, "[")
	if !item {
		return true, nil, nil
	}
	fan := f.fans[name]
	begun, starts := d.(protocol.StepStarted)
	if fan == nil && starts && begun.Of > foldFrom {
		fan = &foldedFan{of: begun.Of, ended: map[string]string{}}
		if f.fans == nil {
			f.fans = map[string]*foldedFan{}
		}
		f.fans[name] = fan
		before = append(before, fan.line(e, name, "started"))
	}
	if fan == nil {
		return true, nil, nil
	}
	odd := false
	switch d := d.(type) {
	case protocol.StepStarted:
		delete(fan.ended, step) // it is done again
	case protocol.AttemptFailed, protocol.WaitingFor:
		odd = true
	case protocol.StepCompleted:
		how := cmp.Or(string(d.Status), string(protocol.StepOK))
		if code := exit(d); code != "" && code != "exit 0" {
			how = code
		}
		odd = how != string(protocol.StepOK) && how != string(protocol.StepSkipped)
		fan.ended[step] = how
		behind = fan.count(e, name)
	}
	if odd {
		if fan.odd++; fan.odd == oddMax+1 {
			before = append(before, fan.line(e, name, "… more items failed, ask or are tried again: --all shows them"))
		}
	}
	return odd && fan.odd <= oddMax, before, behind
}

// count are the lines that follow when one more item has ended.
func (x *foldedFan) count(e *protocol.Entry, name string) (lines []string) {
	n := len(x.ended)
	tenths := n * 10 / x.of
	if n < x.of {
		if tenths > x.told {
			x.told = tenths
			lines = append(lines, x.line(e, name, fmt.Sprintf("%d of %d ended", n, x.of)))
		}
		return lines
	}
	if more := x.odd - oddMax; more > 0 {
		lines = append(lines, x.line(e, name, fmt.Sprintf("… %d more lines of items that failed, ask or are tried again: --all shows them", more)))
	}
	counts := map[string]int{}
	for _, how := range x.ended {
		counts[how]++
	}
	return append(lines, x.line(e, name, "completed: "+tally(counts)))
}

// tally is how many ended in which way.
func tally(counts map[string]int) string {
	var parts []string
	for _, how := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[how], how))
	}
	return strings.Join(parts, ", ")
}

func (x *foldedFan) line(e *protocol.Entry, name, text string) string {
	return stamped(e, fmt.Sprintf("%s[%d items]", name, x.of), text)
}
