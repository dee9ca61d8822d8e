package tree

import "wf/protocol"

// counter counts what Walk or Diff will yield, before they yield much of it: directories that name one directory twenty times,
// twelve deep, are twelve blocks and more entries than there is memory for. It begins where a pair of directories is met
// that was met before; where none is, each entry that is yielded has bytes of its own.
type counter struct {
	read  Read
	met   map[[2]protocol.Link]bool
	sizes map[[2]protocol.Link]size // of what was counted; nil before anything is
}

// size is what lies below a pair of directories: entries, and directories within each other.
type size struct{ entries, depth int }

// meet notes that a pair is about to be read; from is the pair of the roots.
func (c *counter) meet(pair, from [2]protocol.Link) error {
	if c.sizes != nil {
		return nil
	}
	if !c.met[pair] {
		if c.met == nil {
			c.met = map[[2]protocol.Link]bool{}
		}
		c.met[pair] = true
		return nil
	}
	c.sizes = map[[2]protocol.Link]size{}
	_, err := c.count(from, 1)
	return err
}

// count counts what Diff yields of a pair, each pair once.
func (c *counter) count(pair [2]protocol.Link, depth int) (size, error) {
	if pair[0] == pair[1] {
		return size{}, nil
	}
	out, known := c.sizes[pair]
	if known {
		if depth+out.depth-1 > DepthMax {
			return out, errTooDeep
		}
		return out, nil
	}
	if depth > DepthMax {
		return out, errTooDeep
	}
	var sides [2][]Entry
	for i, dir := range pair {
		if !dir.Defined() {
			continue
		}
		var err error
		if sides[i], err = Entries(c.read, dir); err != nil {
			return out, err
		}
	}
	out.entries = len(sides[0]) + len(sides[1])
	for len(sides[0])+len(sides[1]) > 0 {
		x, y := pairOf(&sides[0], &sides[1])
		if x == y {
			continue
		}
		var below [][2]protocol.Link
		switch was, is := x.Mode == Dir, y.Mode == Dir; {
		case was && is:
			below = [][2]protocol.Link{{x.Link, y.Link}}
		case was:
			below = [][2]protocol.Link{{x.Link}}
		case is:
			below = [][2]protocol.Link{{{}, y.Link}}
		}
		for _, pair := range below {
			n, err := c.count(pair, depth+1)
			if err != nil {
				return out, err
			}
			out.entries, out.depth = out.entries+n.entries, max(out.depth, n.depth)
		}
		if out.entries > WalkMax {
			return out, errTooMany
		}
	}
	out.depth++
	c.sizes[pair] = out
	return out, nil
}

// pairOf takes what two directories have under the next name.
func pairOf(a, b *[]Entry) (x, y Entry) {
	first, second := *a, *b
	if len(second) == 0 || len(first) > 0 && first[0].Name <= second[0].Name {
		x, *a = first[0], first[1:]
	}
	if len(first) == 0 || len(second) > 0 && second[0].Name <= first[0].Name {
		y, *b = second[0], second[1:]
	}
	return x, y
}
