package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

// A fan-out of more than FoldFrom items is one line, with how many ended in which way; of its items only
// those have lines that did not end well, oddMax of them at most.
const (
	FoldFrom = 10
	oddMax   = api.FoldOdd
)

// A Folder keeps the events of long fan-outs out of a stream of lines. In their place are a line at the
// beginning, one for each tenth of the items, and at the end how many ended in which way:
//
//	item#1  1,000 items started
//	item#1[7]  completed ok in 0.0s  k3mau2xq  exit 1
//	item#1  100 of 1,000 items ended
//	…
//	item#1  1,000 items: 980 ok, 20 exit 1 in 12.3s
//
// Of the items only those have lines of their own that failed, whose commands exited with another code than 0,
// that ask something or are tried again, oddMax of each fan-out at most: which ones, the order decides in which
// they come. The first that is left out has a line which says so, since a fan-out with items that ask does not
// end by itself.
// The zero value folds; a nil folder folds nothing.
type Folder struct {
	fans map[string]*fan
}

// A Tally counts the states of the items of a fan-out, as far as they are known.
type Tally struct {
	of     int               // items in all
	how    map[string]string // the state of each item that began, by step: how it ended, "running" or "waiting"
	counts map[string]int    // items by state
}

// NewTally is the tally of a fan-out of so many items, 0 where that is unknown.
func NewTally(of int) Tally {
	t := Tally{how: map[string]string{}, counts: map[string]int{}}
	t.Of(of)
	return t
}

// Of takes in how many items there are.
func (t *Tally) Of(n int) {
	if more := n - len(t.how); more > 0 {
		t.of, t.counts[toCome] = n, more
	}
}

// Take notes the state of an item.
func (t *Tally) Take(s *api.Step) { t.note(s.ID, StepState(s)) }

// Long reports whether there are too many items to show them one by one.
func (t *Tally) Long() bool { return max(t.of, len(t.how)) > FoldFrom }

// Odd reports whether an item wants to be looked at.
func (t *Tally) Odd(step string) bool { return odds(t.how[step]) }

// Worst is the worst state of an item, as a sign shows it.
func (t *Tally) Worst() string { return worst(t.counts) }

// String is how many items have each state.
func (t *Tally) String() string {
	return fmt.Sprintf("%s items: %s", grouped(max(t.of, len(t.how))), tally(t.counts))
}

// Short is String without the items that ended well, where others did not.
func (t *Tally) Short() string {
	counts := maps.Clone(t.counts)
	delete(counts, string(protocol.StepOK))
	if len(counts) == 0 {
		return t.String()
	}
	return grouped(max(t.of, len(t.how))) + ": " + tally(counts)
}

// note notes the state of an item.
func (t *Tally) note(step, how string) {
	was, begun := t.how[step]
	if !begun {
		was = toCome
	}
	if t.counts[was]--; t.counts[was] <= 0 {
		delete(t.counts, was)
	}
	t.how[step] = how
	t.counts[how]++
}

// fan is a fan-out as far as its events came.
type fan struct {
	Tally
	name        string
	told        int             // tenths that have a line
	cut         map[string]bool // items whose newest reply was cut off
	odd         map[string]int  // items that want to be looked at, with how many came before
	began, last int64           // µs
	usage       protocol.UsageSum
	cost        int64 // pico-dollars of the calls whose price is known
}

// folding is what becomes of an event.
type folding struct {
	own            bool     // it has a line of its own
	fan            *fan     // that it belongs to, if that is folded
	before, behind []string // what is said of the fan-out before the event and after it
}

// NewFolder is a folder, or nil where all items are wanted.
func (p *Printer) NewFolder() *Folder {
	if p.All {
		return nil
	}
	return &Folder{}
}

// Saw takes in an event that came before those that are shown: it counts, and has no line.
func (b Backdrop) Saw(u api.Update) {
	if u.Entry == nil {
		return
	}
	if x := b.fold(u.Run, u.Step, u.Entry.TS, u.Data); x.fan != nil {
		clear(x.fan.odd) // what went wrong before hides nothing that goes wrong now
	}
}

// folds reports whether a step is an item that is folded.
func (f *Folder) folds(step string) bool {
	name, _, item := strings.Cut(step, "[")
	return f != nil && item && f.fans[name] != nil
}

// fold says what becomes of an event of a step of a run. The time is in µs.
func (b Backdrop) fold(run protocol.RunID, step string, at int64, d protocol.Data) folding {
	f := b.Fold
	name, _, item := strings.Cut(step, "[")
	if f == nil || !item {
		return folding{own: true}
	}
	x := f.fans[name]
	begun, starts := d.(protocol.StepStarted)
	if x == nil && (!starts || begun.Of <= FoldFrom) {
		return folding{own: true}
	}
	out := folding{fan: x}
	if x == nil {
		x = &fan{Tally: NewTally(begun.Of), name: name, cut: map[string]bool{}, odd: map[string]int{}, began: at}
		if f.fans == nil {
			f.fans = map[string]*fan{}
		}
		f.fans[name] = x
		out.fan, out.before = x, append(out.before, grouped(x.of)+" items started")
	}
	x.last = at
	odd := false
	switch d := d.(type) {
	case protocol.StepStarted:
		x.note(step, "running")
	case protocol.Usage:
		x.usage.Add(d)
		if d.Kind == protocol.UsageTurn && d.Child == nil {
			x.cut[step] = d.Stop == protocol.StopLength
		}
		if b.Price != nil {
			if cost := b.Price(d); cost != nil {
				x.cost += *cost
			}
		}
	case protocol.AttemptFailed:
		odd = true
	case protocol.WaitingFor:
		odd = true
		x.note(step, "waiting")
	case protocol.StepCompleted:
		how := howEnded(string(cmp.Or(d.Status, protocol.StepOK)), b.exit(d), x.cut[step])
		odd = odds(how)
		x.note(step, how)
		out.behind = x.progress(run)
	}
	if !odd {
		return out
	}
	rank, known := x.odd[step]
	if !known {
		rank = len(x.odd)
		x.odd[step] = rank
	}
	if out.own = rank < oddMax; !known && rank == oddMax {
		out.before = append(out.before, "… more items are to be looked at: "+b.commands(allCommand("log", run)))
	}
	return out
}

// allCommand shows every item of the fan-outs of a run.
func allCommand(command string, run protocol.RunID) string {
	return wf(command, string(run), "--all") + " shows them"
}

// howEnded is how a step ended, in a word: its status, or what is to be looked at of one that ended well: the code of
// a command other than 0, or that its answer was cut off.
func howEnded(status, exit string, cut bool) string {
	switch {
	case status != string(protocol.StepOK):
	case isExit(exit) && exit != "exit 0":
		return exit
	case cut:
		return cutShort
	}
	return status
}

// itemEnded is how an item ended, in a word; "" for a step that is none. cut says that its answer was cut off.
func (b Backdrop) itemEnded(step string, d protocol.StepCompleted, cut bool) string {
	name := fanName(step)
	if name == "" {
		return ""
	}
	if b.Fold.folds(step) {
		return b.Fold.fans[name].how[step]
	}
	return howEnded(string(cmp.Or(d.Status, protocol.StepOK)), b.exit(d), cut)
}

// isRed reports whether an item that ended so ended ok, and is to be looked at.
func isRed(how string) bool { return isExit(how) && how != "exit 0" || how == cutShort }

// odds reports whether an item of this state wants to be looked at.
func odds(how string) bool {
	return !slices.Contains([]string{"", string(protocol.StepOK), string(protocol.StepSkipped), "running", "queued", "held"}, how)
}

// ended is how many items have ended.
func (x *fan) ended() int {
	return len(x.how) - x.counts["running"] - x.counts["waiting"] - x.counts["not over"]
}

// done reports whether every item has ended.
func (x *fan) done() bool { return x.ended() >= x.of }

// progress is what is said when one more item has ended.
func (x *fan) progress(run protocol.RunID) (lines []string) {
	n := x.ended()
	tenths := n * 10 / x.of
	if n < x.of {
		if tenths > x.told {
			x.told = tenths
			lines = append(lines, fmt.Sprintf("%s of %s items ended", grouped(n), grouped(x.of)))
		}
		return lines
	}
	if more := len(x.odd) - oddMax; more > 0 {
		lines = append(lines, fmt.Sprintf("… %s more items were to be looked at: %s", grouped(more), allCommand("log", run)))
	}
	return append(lines, x.String())
}

// String is the fan-out on one line, without its name.
func (x *fan) String() string {
	span := Span(time.Duration(x.last-x.began) * time.Microsecond)
	return fmt.Sprintf("%s in %s%s", x.Tally.String(), span, x.spent())
}

// standing is how far it came, without its time.
func (x *fan) standing() string { return x.Tally.String() + x.spent() }

// spent is what the model calls of the items used and cost, "" without any.
func (x *fan) spent() string {
	text := ""
	if x.usage.Calls > 0 {
		text = "  " + used(x.usage)
	}
	if x.cost > 0 {
		text += "  " + priced(float64(x.cost)/1e12)
	}
	return text
}

// worst is the worst state of items, by how many have each, as a sign shows it.
func worst(counts map[string]int) string {
	for _, how := range []string{"failed", "parked", "retrying", "interrupted"} {
		if counts[how] > 0 {
			return how
		}
	}
	for how := range counts {
		if isRed(how) {
			return redItem
		}
	}
	for _, how := range []string{"waiting", "running", "not over", "held", "queued", toCome, "cancelled"} {
		if counts[how] > 0 {
			return how
		}
	}
	return string(protocol.StepOK)
}

const (
	toCome   = "to come" // items that have not begun
	cutShort = "cut off"
	redItem  = "red" // an item that ended ok and is to be looked at
)

func isExit(how string) bool { return strings.HasPrefix(how, "exit ") }

// exitsMax is how many exit codes are counted apart.
const exitsMax = 3

// tally is how many items have each state: those that ended well first, then the others.
func tally(counts map[string]int) string {
	codes, others := 0, 0
	for how, n := range counts {
		if isExit(how) {
			codes, others = codes+1, others+n
		}
	}
	if codes > exitsMax {
		counts = maps.Clone(counts)
		maps.DeleteFunc(counts, func(how string, _ int) bool { return isExit(how) })
		counts["with another exit code than 0"] = others
	}
	order := []string{"ok", "exit", cutShort, "failed", "skipped", "running", "not over", "held", "waiting", "parked", "retrying", "interrupted", "queued", toCome}
	place := func(how string) int {
		if isExit(how) || strings.HasPrefix(how, "with ") {
			how = "exit"
		}
		if i := slices.Index(order, how); i >= 0 {
			return i
		}
		return len(order)
	}
	var parts []string
	for _, how := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b)) }) {
		parts = append(parts, grouped(counts[how])+" "+how)
	}
	return strings.Join(parts, ", ")
}

// left are the folded fan-outs with items that have not ended, by name, when no more is shown of them.
func (f *Folder) left() (fans []*fan) {
	if f == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.fans)) {
		if x := f.fans[name]; !x.done() {
			x.leave()
			fans = append(fans, x)
		}
	}
	return fans
}

// close says how far the folded fan-outs came that have not ended, as of the last event that was shown; nil is none, and then
// there is nothing new to say.
func (f *Folder) close(w io.Writer, last *protocol.Entry) {
	if last == nil {
		return
	}
	for _, x := range f.left() {
		fmt.Fprintln(w, stamped(last, x.name, x.String()))
	}
}

// leave takes in that the run is not driven on: what ran is not over.
func (x *fan) leave() {
	for step, how := range x.how {
		if how == "running" {
			x.note(step, "not over")
		}
	}
}
