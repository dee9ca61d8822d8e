package tree

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// lineTable numbers lines, so that they are compared at once.
type lineTable struct {
	numbers map[string]int32
	texts   []string
}

// lines are those of a text, each with its line feed.
func (x *lineTable) lines(text []byte) []int32 {
	if x.numbers == nil {
		x.numbers = map[string]int32{}
	}
	out := make([]int32, 0, bytes.Count(text, []byte("\n"))+1)
	for line := range bytes.Lines(text) {
		n, ok := x.numbers[string(line)]
		if !ok {
			n = int32(len(x.texts))
			x.numbers[string(line)] = n
			x.texts = append(x.texts, string(line))
		}
		out = append(out, n)
	}
	return out
}

func (x *lineTable) write(b *strings.Builder, lines []int32) {
	for _, n := range lines {
		b.WriteString(x.texts[n])
	}
}

// lose writes lines that were not taken over, below those that stand in their place.
func (x *lineTable) lose(b *strings.Builder, stay, lost []int32) {
	for _, part := range []struct {
		mark  string
		lines []int32
	}{{"<<<<<<< stays\n", stay}, {"=======\n", lost}} {
		b.WriteString(part.mark)
		for _, n := range part.lines {
			if b.Len() > ConflictMax {
				return
			}
			line := strings.ToValidUTF8(x.texts[n], string(utf8.RuneError))
			if room := ConflictMax - b.Len(); len(line) > room {
				line = strings.ToValidUTF8(line[:max(room, 0)], "") + " …\n"
			}
			b.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n")
			}
		}
	}
	b.WriteString(">>>>>>> not taken over\n")
}

// A hunk is lines [from, to) of a text that became lines [as, end) of another.
type hunk struct{ from, to, as, end int }

// grown is by how many lines the other text is longer there.
func (h hunk) grown() int { return h.end - h.as - (h.to - h.from) }

// The work that comparing two texts is allowed where no line tells both apart: edits, and edits by lines.
const (
	editsMax = 1024
	workMax  = 64 << 20
)

// diffLines are the hunks by which a text became another, in order, with a line between any two. Lines that each text has
// once, in the same order, are the same (the patience of Bram Cohen); between them the fewest edits are looked for (Eugene
// Myers, 1986), up to a bound beyond which all lines there have changed.
func diffLines(a, b []int32) []hunk {
	d := differLines{a: a, b: b}
	d.between(0, len(a), 0, len(b))
	d.hunk(len(a), len(b))
	return d.out
}

type differLines struct {
	a, b []int32
	out  []hunk
	x, y int // behind the lines that were found to be the same
}

// same notes lines that are the same; each call is behind those before it.
func (d *differLines) same(x, y, n int) {
	if n > 0 {
		d.hunk(x, y)
		d.x, d.y = x+n, y+n
	}
}

// hunk ends the lines that have changed.
func (d *differLines) hunk(x, y int) {
	if d.x < x || d.y < y {
		d.out = append(d.out, hunk{d.x, x, d.y, y})
	}
}

// between compares the lines [x, xEnd) with [y, yEnd).
func (d *differLines) between(x, xEnd, y, yEnd int) {
	n := 0
	for x+n < xEnd && y+n < yEnd && d.a[x+n] == d.b[y+n] {
		n++
	}
	d.same(x, y, n)
	x, y = x+n, y+n
	end := 0
	for x < xEnd-end && y < yEnd-end && d.a[xEnd-end-1] == d.b[yEnd-end-1] {
		end++
	}
	xEnd, yEnd = xEnd-end, yEnd-end
	if x < xEnd && y < yEnd {
		if anchors := d.anchors(x, xEnd, y, yEnd); len(anchors) > 0 {
			for _, p := range anchors {
				d.between(x, p.x, y, p.y)
				d.same(p.x, p.y, 1)
				x, y = p.x+1, p.y+1
			}
			d.between(x, xEnd, y, yEnd)
		} else {
			d.fewest(x, xEnd, y, yEnd)
		}
	}
	d.same(xEnd, yEnd, end)
}

type point struct{ x, y int }

// anchors are the longest row of lines that both have once there, in the same order.
func (d *differLines) anchors(x, xEnd, y, yEnd int) []point {
	type count struct{ inA, inB, x, y int }
	counts := make(map[int32]*count, xEnd-x)
	for i := x; i < xEnd; i++ {
		c := counts[d.a[i]]
		if c == nil {
			c = new(count)
			counts[d.a[i]] = c
		}
		c.inA, c.x = c.inA+1, i
	}
	for i := y; i < yEnd; i++ {
		if c := counts[d.b[i]]; c != nil {
			c.inB, c.y = c.inB+1, i
		}
	}
	var all []point
	for i := x; i < xEnd; i++ {
		if c := counts[d.a[i]]; c.inA == 1 && c.inB == 1 {
			all = append(all, point{i, c.y})
		}
	}
	// The longest row that ascends: top[i] is the last of the row of length i+1 that ends earliest.
	var top []int
	before := make([]int, len(all))
	for i, p := range all {
		at, end := 0, len(top)
		for at < end {
			if mid := (at + end) / 2; all[top[mid]].y < p.y {
				at = mid + 1
			} else {
				end = mid
			}
		}
		before[i] = -1
		if at > 0 {
			before[i] = top[at-1]
		}
		if at == len(top) {
			top = append(top, i)
		} else {
			top[at] = i
		}
	}
	out := make([]point, len(top))
	for i, at := len(top)-1, -1; i >= 0; i-- {
		if at < 0 {
			at = top[i]
		}
		out[i] = all[at]
		at = before[at]
	}
	return out
}

// fewest finds the fewest edits, if they are not too many.
func (d *differLines) fewest(x, xEnd, y, yEnd int) {
	n, m := xEnd-x, yEnd-y
	most := min(n+m, editsMax, workMax/(n+m))
	var trace [][]int32 // of each number of edits, how far each diagonal was reached before the last of them
	v := make([]int32, 2*most+3)
	mid := most + 1
	for edits := 0; edits <= most; edits++ {
		trace = append(trace, append([]int32(nil), v[mid-edits-1:mid+edits+2]...))
		for k := -edits; k <= edits; k += 2 {
			var i int32
			if k == -edits || k != edits && v[mid+k-1] < v[mid+k+1] {
				i = v[mid+k+1]
			} else {
				i = v[mid+k-1] + 1
			}
			j := i - int32(k)
			for int(i) < n && int(j) < m && d.a[x+int(i)] == d.b[y+int(j)] {
				i, j = i+1, j+1
			}
			v[mid+k] = i
			if int(i) >= n && int(j) >= m {
				d.walk(trace, x, y, n, m)
				return
			}
		}
	}
}

// walk goes back over the edits, and notes the lines between them.
func (d *differLines) walk(trace [][]int32, x, y, i, j int) {
	type run struct{ x, y, n int }
	var runs []run
	for edits := len(trace) - 1; edits >= 0; edits-- {
		v, mid := trace[edits], edits+1
		k := i - j
		if edits == 0 {
			runs = append(runs, run{x, y, i})
			break
		}
		from := k - 1
		if k == -edits || k != edits && v[mid+k-1] < v[mid+k+1] {
			from = k + 1
		}
		fi := int(v[mid+from])
		fj := fi - from
		at := fi // behind the edit
		if from < k {
			at++
		}
		runs = append(runs, run{x + at, y + at - k, i - at})
		i, j = fi, fj
	}
	for at := len(runs) - 1; at >= 0; at-- {
		d.same(runs[at].x, runs[at].y, runs[at].n)
	}
}
