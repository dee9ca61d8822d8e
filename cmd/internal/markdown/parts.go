package markdown

import "strings"

// How long a part of a text is, in bytes: it ends behind the first line beyond partMin that is none of a table, and at
// the latest in the middle of what partMost has.
const (
	partMin  = 16 << 10
	partMost = 64 << 10
)

// Parts is a text that grows, cut into parts which are shown each by itself: of a long text only what is on the
// screen is drawn. The zero Parts is empty.
type Parts struct {
	text string
	tail string
	ends []int    // of the parts that are complete
	open []string // the fence in which each part begins, "" is none; that of the last part, too
	seen int      // the lines before were looked at
	in   string   // the fence that is open there
	last Growing  // the last part
}

// Grow takes the text as it is now; tail goes behind it, and may be another one the next time. It reports whether what was
// complete stays as it was.
func (p *Parts) Grow(text, tail string) (grown bool) {
	if grown = strings.HasPrefix(text, p.text[:p.seen]); !grown {
		*p = Parts{}
	}
	if len(p.open) == 0 {
		p.open = []string{""}
	}
	p.text, p.tail = text, tail
	for {
		begin := p.from(len(p.ends))
		end := strings.IndexByte(text[p.seen:], '\n') + 1
		switch {
		case end > 0:
			line := text[p.seen : p.seen+end-1]
			p.seen += end
			p.in = fence(p.in, line)
			if n := p.seen - begin; n < partMin || n < partMost && strings.Contains(line, "|") {
				continue
			}
		case len(text)-begin > partMost: // a line that is as long
			for p.seen = begin + partMost; text[p.seen]&0xc0 == 0x80; p.seen-- {
			}
		default:
			return grown
		}
		p.ends, p.open, p.last = append(p.ends, p.seen), append(p.open, p.in), Growing{}
	}
}

// Len is how many parts there are, at least one.
func (p *Parts) Len() int { return len(p.ends) + 1 }

// Complete is how many parts do not change any more when the text grows.
func (p *Parts) Complete() int { return len(p.ends) }

// from is where a part begins.
func (p *Parts) from(i int) int {
	if i == 0 {
		return 0
	}
	return p.ends[i-1]
}

// Lines shows a part on lines of at most width cells.
func (p *Parts) Lines(i, width int) []string {
	before := ""
	if i < len(p.open) && p.open[i] != "" {
		before = p.open[i] + "\n"
	}
	if i == len(p.ends) {
		if i > 0 && p.ends[i-1] == len(p.text) && p.tail == "" {
			return nil
		}
		return p.last.Lines(before+p.text[p.from(i):]+p.tail, width)
	}
	return Lines(before+strings.TrimSuffix(p.text[p.from(i):p.ends[i]], "\n"), width)
}

// fence is the fence that is open behind a line, by the one that is open before it.
func fence(open, line string) string {
	if open != "" {
		if t := strings.TrimSpace(line); strings.HasPrefix(t, open) && strings.Trim(t, open[:1]) == "" {
			return ""
		}
		return open
	}
	if t := strings.TrimLeft(line, " "); !strings.HasPrefix(t, "```") && !strings.HasPrefix(t, "~~~") {
		return "" // most lines are none
	}
	if m := fences().FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}
