package lang

import (
	"slices"
	"strings"
)

// use is a variable that a command mentions outside of quotes.
type use struct {
	name  string
	at    int // byte offset of the $
	width int // in bytes; names are ASCII
}

// unquoted lists the uses of the named variables in a shell command where the shell
// would split and expand: outside of double quotes, of assignments, of what case looks at and of here-documents.
// It reads the POSIX grammar as far as quoting goes.
func unquoted(cmd string, names map[string]bool) []use {
	if len(names) == 0 {
		return nil
	}
	s := &shellScan{src: cmd, names: names}
	s.code("")
	return s.found
}

// separators end a word; leading are the words of the shell behind which a command begins.
const separators = " \t\n;&|()>"

var leading = []string{"if", "then", "elif", "else", "while", "until", "do", "!", "{"}

type shellScan struct {
	src     string
	pos     int
	names   map[string]bool
	found   []use
	pending []string // delimiters of here-documents that begin on the next line
}

// code reads commands until the closing byte, or the end.
func (s *shellScan) code(until string) {
	wordStart, assigning := true, false
	command, subject := true, false // the next word is a command; it is what case looks at
	for s.pos < len(s.src) {
		c, rest := s.src[s.pos], s.src[s.pos:]
		if wordStart && strings.IndexByte(separators, c) < 0 {
			switch word := rest[:max(0, strings.IndexAny(rest, separators))]; {
			case subject:
				assigning, subject, command = true, false, false
			case command && word == "case":
				subject, wordStart = true, false
				s.pos += len(word)
				continue
			case command && !slices.Contains(leading, word) && !s.assignment():
				command = false
			}
		}
		switch {
		case until != "" && c == until[0]:
			s.pos++
			return
		case c == '\\':
			s.pos += 2
		case c == '\'':
			s.pos++
			s.skipTo("'")
		case c == '"':
			s.pos++
			s.double()
		case c == '`':
			s.pos++
			s.code("`")
		case c == '$':
			s.dollar(!assigning)
		case c == '#' && wordStart:
			line, _, _ := strings.Cut(rest, "\n")
			s.pos += len(line)
			continue
		case strings.HasPrefix(rest, "<<<"): // bash: a word, not a document
			s.pos += 3
		case strings.HasPrefix(rest, "<<"):
			s.heredoc()
			wordStart = true
			continue
		case strings.IndexByte(separators, c) >= 0:
			s.pos++
			command = command || c != ' ' && c != '\t' && c != '>'
			if c == '\n' {
				s.bodies()
			}
			wordStart, assigning = true, false
			continue
		default:
			assigning = assigning || wordStart && s.assignment()
			s.pos++
		}
		wordStart = false
	}
}

// assignment reports whether NAME= stands here.
func (s *shellScan) assignment() bool {
	i := s.pos
	for i < len(s.src) && isWord(s.src[i]) {
		i++
	}
	return i > s.pos && i < len(s.src) && s.src[i] == '='
}

// skipTo passes the next end.
func (s *shellScan) skipTo(end string) {
	_, after, _ := strings.Cut(s.src[s.pos:], end)
	s.pos = len(s.src) - len(after)
}

// double reads on to the closing double quote.
func (s *shellScan) double() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case '\\':
			s.pos += 2
		case '"':
			s.pos++
			return
		case '`':
			s.pos++
			s.code("`")
		case '$':
			s.dollar(false)
		default:
			s.pos++
		}
	}
}

// dollar reads $NAME, ${NAME…}, $(commands) and $((arithmetic)).
func (s *shellScan) dollar(splits bool) {
	start := s.pos
	s.pos++
	if s.pos >= len(s.src) {
		return
	}
	switch {
	case strings.HasPrefix(s.src[s.pos:], "(("):
		s.skipTo("))")
	case s.src[s.pos] == '(':
		s.pos++
		s.code(")")
	case s.src[s.pos] == '{':
		s.pos++
		hash := s.pos < len(s.src) && s.src[s.pos] == '#' // a length is a number
		if hash {
			s.pos++
		}
		name := s.word()
		if splits && !hash && s.names[name] {
			s.found = append(s.found, use{name, start, s.pos - start})
		}
		for s.pos < len(s.src) && s.src[s.pos] != '}' {
			switch s.src[s.pos] {
			case '$':
				s.dollar(splits)
			case '"':
				s.pos++
				s.double()
			case '\\':
				s.pos += 2
			default:
				s.pos++
			}
		}
		s.pos = min(s.pos+1, len(s.src))
	default:
		if name := s.word(); splits && s.names[name] {
			s.found = append(s.found, use{name, start, s.pos - start})
		}
	}
}

func (s *shellScan) word() string {
	from := s.pos
	for s.pos < len(s.src) && isWord(s.src[s.pos]) {
		s.pos++
	}
	return s.src[from:s.pos]
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// heredoc notes the delimiter of a << that stands here.
func (s *shellScan) heredoc() {
	rest := strings.TrimLeft(strings.TrimPrefix(s.src[s.pos+2:], "-"), " \t")
	word := rest
	if i := strings.IndexAny(rest, " \t\n;|&<>"); i >= 0 {
		word = rest[:i]
	}
	s.pos = len(s.src) - len(rest) + len(word)
	s.pending = append(s.pending, strings.Trim(word, `'"\`))
}

// bodies passes the here-documents that were announced on the line before.
func (s *shellScan) bodies() {
	for _, end := range s.pending {
		for s.pos < len(s.src) {
			line, _, _ := strings.Cut(s.src[s.pos:], "\n")
			s.pos = min(s.pos+len(line)+1, len(s.src))
			if strings.TrimLeft(line, "\t") == end {
				break
			}
		}
	}
	s.pending = nil
}
