package markdown

import "strings"

// Growing shows a text that grows: what was shown of it before is not looked at again. The zero
// Growing is ready.
type Growing struct {
	p    printer
	done string // the lines that are in p for good
}

// Lines is as Lines of the package. It is quick where text begins with what it was the last
// time, and width is as it was.
func (g *Growing) Lines(text string, width int) []string {
	width = max(1, width)
	if g.p.width != width || !strings.HasPrefix(text, g.done) {
		*g = Growing{p: printer{width: width}}
	}
	if n := settled(text[len(g.done):]); n > 0 {
		g.p.lines(strings.Split(text[len(g.done):len(g.done)+n-1], "\n"))
		g.done = text[:len(g.done)+n]
	}
	tail := printer{width: width, fence: g.p.fence}
	tail.lines(strings.Split(text[len(g.done):], "\n"))
	return append(g.p.out[:len(g.p.out):len(g.p.out)], tail.out...)
}

// settled is how many bytes of a text are lines that stay as they are, whatever follows: all
// that are complete, but for those at the end that may be a table.
func settled(text string) int {
	end := strings.LastIndexByte(text, '\n') + 1
	for end > 0 {
		begin := strings.LastIndexByte(text[:end-1], '\n') + 1
		if !strings.Contains(text[begin:end], "|") {
			break
		}
		end = begin
	}
	return end
}
