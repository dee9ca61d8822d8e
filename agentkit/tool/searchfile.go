package tool

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"wf/roles/workspace"
)

const (
	chunkSize = 256 << 10 // bytes read at once; a longer line is searched piece by piece
	sniffSize = 8_000     // bytes in which a NUL makes a file binary, as in git

	cleanMargin = 8 << 10 // bytes before and behind what is shown in which secrets are looked for
)

// seen is what became of a file.
type seen int

const (
	isText seen = iota
	isBinary
	isBlind
)

// file searches one file in bounded memory.
func (s *searcher) file(name string) seen {
	f, err := workspace.OpenRegular(s.root, name)
	if err != nil {
		s.blind++
		return isBlind
	}
	defer f.Close()
	if s.buf == nil {
		s.buf = make([]byte, chunkSize)
	}
	m := matches{searcher: s, name: name, line: 1}
	have := 0
	for first := true; s.ctx.Err() == nil && s.more < countMax; first = false {
		n, err := io.ReadFull(f, s.buf[have:])
		chunk := s.buf[:have+n]
		if first {
			if bytes.IndexByte(chunk[:min(len(chunk), sniffSize)], 0) >= 0 {
				return isBinary
			}
			s.files++
		}
		if err != nil {
			m.chunk(chunk)
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				s.blind++
				return isBlind
			}
			break
		}
		end := bytes.LastIndexByte(chunk, '\n') + 1
		if end == 0 {
			end = len(chunk)
		}
		m.chunk(chunk[:end])
		have = copy(s.buf, chunk[end:])
	}
	return isText
}

// matches finds the lines of one file.
type matches struct {
	*searcher
	name  string
	line  int  // number of the line at hand
	found bool // a line of this file
	last  int  // number of the newest line found
	key   keyLines
}

// chunk searches whole lines, or a piece of a line that is very long.
func (m *matches) chunk(b []byte) {
	keys := m.key.open || bytes.Contains(b, keyWord)
	for len(b) > 0 && m.more < countMax {
		if len(m.prefix) > 0 && !keys {
			at := bytes.Index(b, m.prefix)
			if at < 0 {
				m.line += bytes.Count(b, newline)
				return
			}
			begin := bytes.LastIndexByte(b[:at], '\n') + 1
			m.line += bytes.Count(b[:begin], newline)
			b = b[begin:]
		}
		line, rest, ended := bytes.Cut(b, newline)
		if hidden := keys && m.key.hold(line); !hidden {
			if at := m.form.FindIndex(bytes.TrimSuffix(line, []byte{'\r'})); at != nil {
				m.hit(line, at[0])
			}
		}
		if ended {
			m.line++
		}
		b = rest
	}
}

var newline = []byte{'\n'}

// hit notes a line; from is where the match begins.
func (m *matches) hit(line []byte, from int) {
	if m.found && m.last == m.line {
		return // a further piece of the same line
	}
	if !m.found {
		m.in++
	}
	m.found, m.last = true, m.line
	if m.more > 0 || len(m.hits) >= m.max {
		m.more++
		return
	}
	shown := fmt.Sprintf("%s:%d: %s\n", printable(m.name), m.line, printable(m.around(line, from)))
	if m.bytes+len(shown) > SearchMax {
		m.more++
		return
	}
	m.bytes += len(shown)
	m.hits = append(m.hits, shown)
}

// around is a line, or the part of a long one in which the match begins. Secrets are hidden
// before anything is cut off, so that no part of one is left.
func (m *matches) around(line []byte, from int) string {
	begin := max(0, from-cleanMargin)
	end := min(len(line), from+hitMax+cleanMargin)
	s := m.clean(string(line[begin:end]))
	if begin == 0 && end == len(line) && len(s) <= hitMax {
		return s
	}
	from = 0
	if at := m.form.FindStringIndex(s); at != nil {
		from = at[0]
	}
	first := max(0, min(from-hitMax/4, len(s)-hitMax))
	last := min(len(s), first+hitMax)
	cut := s[first:last]
	if begin+first > 0 {
		cut = "…" + cut
	}
	if last < len(s) || end < len(line) {
		cut += "…"
	}
	return cut
}

// printable is text on one line.
func printable(s string) string {
	s = strings.ToValidUTF8(strings.TrimSuffix(s, "\r"), "�")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return '�'
		}
		return r
	}, s)
}

// head is the beginning of a small file, nothing where there is none.
func (s *searcher) head(name string) []byte {
	f, err := workspace.OpenRegular(s.root, name)
	if err != nil {
		return nil // most directories have none
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, ignoreFileMax))
	if err != nil {
		return nil
	}
	return b
}
