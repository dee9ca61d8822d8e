package tui

import "slices"

// list is a choice among things with ids. The choice stays with its id when others come.
type list struct {
	id  string
	all []string
	at  int // of id in all
	top int
}

// keep takes the newest ids; where the chosen one is gone, the one that has its place is chosen.
func (l *list) keep(all []string) {
	at := slices.Index(all, l.id)
	if at < 0 && len(all) > 0 {
		at = max(0, min(l.at, len(all)-1))
	}
	l.all, l.at, l.id = all, max(0, at), ""
	if at >= 0 && len(all) > 0 {
		l.id = all[at]
	}
}

// choose chooses an id that is there.
func (l *list) choose(id string) {
	if at := slices.Index(l.all, id); at >= 0 {
		l.id, l.at = id, at
	}
}

// place is where the choice is.
func (l *list) place() int { return l.at }

// move chooses another, by so many places. It reports whether that is another one.
func (l *list) move(by int) bool {
	if len(l.all) == 0 {
		return false
	}
	to := max(0, min(l.at+by, len(l.all)-1))
	changed := to != l.at
	l.at, l.id = to, l.all[to]
	return changed
}

// window is which of the ids are visible in so many rows.
func (l *list) window(rows int) (from, to int) {
	rows = max(0, rows)
	l.top = max(0, min(l.top, l.at, len(l.all)-rows))
	if l.at >= l.top+rows {
		l.top = l.at - rows + 1
	}
	return max(0, l.top), min(len(l.all), max(0, l.top)+rows)
}
