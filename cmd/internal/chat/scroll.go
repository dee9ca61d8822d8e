package chat

import (
	"slices"
	"strings"
)

// scroll shows a window of the items. Only what is in it, or was passed on the way to it, is drawn, block by block,
// and is kept until the item or the width changes.
type scroll struct {
	width  int
	height int
	whole  bool  // nothing is folded
	bottom place // of the last line that is shown; without an item it follows what comes
	used   int   // lines of the window, height where there are as many
	top    bool  // nothing is above the window
	cache  map[*Item]*drawn
}

// place is a line of a block of an item.
type place struct {
	item        *Item
	block, line int
}

// drawn are the blocks of an item as they were drawn; nil is one that was not.
type drawn struct {
	version int
	folded  bool
	whole   bool
	width   int
	blocks  [][]string
}

func (s *scroll) of(it *Item) *drawn {
	d := s.cache[it]
	if d != nil && d.version == it.version && d.folded != it.Unfolded && d.width == s.width && d.whole == s.whole {
		return d
	}
	n, complete := it.blocks()
	now := &drawn{it.version, !it.Unfolded, s.whole, s.width, make([][]string, n)}
	if d != nil && d.width == s.width { // what was complete stays, but for the first lines, which go with the name
		for i := 2; i < min(complete, len(d.blocks)-1); i++ {
			now.blocks[i] = d.blocks[i]
		}
	}
	if s.cache == nil {
		s.cache = map[*Item]*drawn{}
	}
	s.cache[it] = now
	return now
}

// lines are those of a block.
func (s *scroll) lines(it *Item, block int) []string {
	d := s.of(it)
	if d.blocks[block] == nil {
		d.blocks[block] = it.block(block, s.width, s.whole)
		if d.blocks[block] == nil {
			d.blocks[block] = []string{}
		}
	}
	return d.blocks[block]
}

// cursor is a place among items, by index; its line is −1 before the first line of its block.
type cursor struct{ item, block, line int }

// end is the last line of all.
func (s *scroll) end(items []*Item) cursor {
	return s.settle(items, cursor{len(items), 0, -1})
}

// settle goes up to the next line, where there is none at the cursor.
func (s *scroll) settle(items []*Item, c cursor) cursor {
	for c.line < 0 && c.item >= 0 {
		if c.block--; c.block < 0 {
			if c.item--; c.item < 0 {
				break
			}
			c.block = len(s.of(items[c.item]).blocks) - 1
		}
		c.line = len(s.lines(items[c.item], c.block)) - 1
	}
	return c
}

// at is where the window ends. A place that is not there any more, such as of a history that was changed, is the end.
func (s *scroll) at(items []*Item) cursor {
	if s.bottom.item == nil {
		return s.end(items)
	}
	for i := len(items) - 1; i >= 0; i-- {
		if items[i] != s.bottom.item {
			continue
		}
		c := cursor{i, min(s.bottom.block, len(s.of(items[i]).blocks)-1), 0}
		c.line = min(s.bottom.line, len(s.lines(items[i], c.block))-1)
		return s.settle(items, c)
	}
	s.follow()
	return s.end(items)
}

// follow shows what comes.
func (s *scroll) follow() { s.bottom = place{} }

// follows reports whether the window is at the end.
func (s *scroll) follows() bool { return s.bottom.item == nil }

// stay keeps the window where it ends, or has it follow at the end.
func (s *scroll) stay(items []*Item, c cursor) {
	if c == s.end(items) || c.item < 0 {
		s.follow()
		return
	}
	s.bottom = place{items[c.item], c.block, c.line}
}

// window is what is visible of items, exactly height lines. While it is not at the bottom it
// stays at its place when lines are added below.
func (s *scroll) window(items []*Item) []string {
	out := s.above(items, s.at(items), s.height)
	if len(out) < s.height && !s.follows() { // there is room below
		_, left := s.down(items, s.at(items), s.height-len(out))
		s.move(items, left-(s.height-len(out)))
		out = s.above(items, s.at(items), s.height)
	}
	s.used = len(out)
	slices.Reverse(out)
	return append(out, make([]string, s.height-len(out))...) // a short conversation begins at the top
}

// above are up to n lines that end at a cursor, the last one first. It notes whether they are the first of all.
func (s *scroll) above(items []*Item, c cursor, n int) (out []string) {
	for c.item >= 0 && len(out) < n {
		out = append(out, s.lines(items[c.item], c.block)[c.line])
		c.line--
		c = s.settle(items, c)
	}
	s.top = c.item < 0
	return out
}

// up goes up by n lines, and returns how many of them there are not.
func (s *scroll) up(items []*Item, c cursor, n int) (cursor, int) {
	for n > 0 {
		if by := min(n, c.line); by > 0 {
			c.line, n = c.line-by, n-by
			continue
		}
		next := s.settle(items, cursor{c.item, c.block, -1})
		if next.item < 0 {
			break
		}
		c, n = next, n-1
	}
	return c, n
}

// down goes down by n lines, and returns how many of them there are not.
func (s *scroll) down(items []*Item, c cursor, n int) (cursor, int) {
	for i, b, l := c.item, c.block, c.line; n > 0; {
		l++
		for i < len(items) && l >= len(s.lines(items[i], b)) {
			if b, l = b+1, 0; b == len(s.of(items[i]).blocks) {
				i, b = i+1, 0
			}
		}
		if i == len(items) {
			break
		}
		c, n = cursor{i, b, l}, n-1
	}
	return c, n
}

// move goes up by n lines, down for a negative n, and returns how many of them there are not above.
func (s *scroll) move(items []*Item, n int) (left int) {
	c := s.at(items)
	if n <= 0 {
		c, _ = s.down(items, c, -n)
		s.stay(items, c)
		return 0
	}
	far, missing := s.up(items, c, s.height-1+n) // the top of the window after it
	left = min(n, missing)
	if s.top = missing > 0; missing == 0 {
		_, more := s.up(items, far, 1)
		s.top = more > 0
	}
	c, _ = s.up(items, c, n-left)
	s.stay(items, c)
	return left
}

// below is how many lines are below the window, about: what was not drawn is not counted line by line.
func (s *scroll) below(items []*Item) (n int) {
	if s.follows() {
		return 0
	}
	c := s.at(items)
	for i := c.item; i < len(items); i++ {
		d := s.of(items[i])
		for b, lines := range d.blocks {
			switch {
			case i == c.item && b < c.block:
			case lines == nil && len(d.blocks) > 1:
				n += (strings.Count(items[i].Text, "\n") + len(items[i].Text)/max(1, s.width)) / len(d.blocks)
			default:
				n += len(s.lines(items[i], b))
			}
		}
	}
	return n - c.line - 1
}

// fromEnd is where the window ends, with its item counted from the end: there older items in front change nothing.
func (s *scroll) fromEnd(items []*Item) int {
	return len(items) - slices.Index(items, s.bottom.item)
}

// again puts the window where it was among items that were folded anew.
func (s *scroll) again(items []*Item, fromEnd int) {
	s.cache = nil
	if i := len(items) - fromEnd; s.bottom.item != nil && i >= 0 && i < len(items) {
		s.bottom.item = items[i]
	}
}
