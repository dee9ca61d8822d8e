package chat

// scroll shows a window of the items. It keeps the lines of each item until the item or the
// width changes.
type scroll struct {
	width  int
	height int
	up     int // lines below the window; 0 follows what comes
	total  int // lines of all items when the window was last drawn
	cache  map[*Item]drawn
}

type drawn struct {
	version int
	folded  bool
	width   int
	lines   []string
}

func (s *scroll) of(it *Item) []string {
	d, ok := s.cache[it]
	if !ok || d.version != it.version || d.folded == it.Unfolded || d.width != s.width {
		d = drawn{it.version, !it.Unfolded, s.width, it.lines(s.width)}
		if s.cache == nil {
			s.cache = map[*Item]drawn{}
		}
		s.cache[it] = d
	}
	return d.lines
}

// window is what is visible of items, exactly height lines. While it is not at the bottom it
// stays at its place when lines are added below.
func (s *scroll) window(items []*Item) []string {
	total := 0
	for _, it := range items {
		total += len(s.of(it))
	}
	if s.up > 0 && total > s.total {
		s.up += total - s.total
	}
	s.total = total
	s.up = max(0, min(s.up, total-s.height))
	out := make([]string, s.height)
	row, skip := s.height, s.up
	for i := len(items) - 1; i >= 0 && row > 0; i-- {
		l := s.of(items[i])
		if skip >= len(l) {
			skip -= len(l)
			continue
		}
		l = l[:len(l)-skip]
		skip = 0
		for j := len(l) - 1; j >= 0 && row > 0; j-- {
			row--
			out[row] = l[j]
		}
	}
	if total < s.height { // a short conversation begins at the top
		out = append(out[s.height-total:], make([]string, s.height-total)...)
	}
	return out
}

// move goes up by n lines, down for a negative n, and returns how many of them there are not.
func (s *scroll) move(n int) (left int) {
	to := s.up + n
	s.up = max(0, min(to, s.most()))
	return to - s.up
}

// most is how far up the window goes.
func (s *scroll) most() int { return max(0, s.total-s.height) }

// atTop reports that there is nothing above the window.
func (s *scroll) atTop() bool { return s.up == s.most() }

// older is called when items were put in front: the window stays where it is, counted from
// the bottom.
func (s *scroll) older(items []*Item) {
	s.cache, s.total = nil, 0
	for _, it := range items {
		s.total += len(s.of(it))
	}
}
