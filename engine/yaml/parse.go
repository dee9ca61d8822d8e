package yaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Limits bound what Parse accepts; 0 is the default.
type Limits struct {
	Bytes int // default 4 MiB
	Depth int // nesting; default 100
	Nodes int // with aliases written out; default 500,000
}

func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(l.Bytes, 4<<20)
	l.Depth = cmp.Or(l.Depth, 100)
	l.Nodes = cmp.Or(l.Nodes, 500_000)
	return l
}

// Error is one reason why a document was refused.
type Error struct {
	Pos, End Pos
	Message  string
	Hint     string // what to do, or ""
	Node     *Node  // the scalar or collection that is refused, where the rest could be read; or nil
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Pos.Line, e.Pos.Col, e.Message)
}

// Parse reads the only document of src. An empty document gives a nil Node and no error. With
// errors the Node is nil, or, where only keys were repeated and single values refused, what the rest says.
func Parse(src []byte, l Limits) (*Node, []*Error) {
	l = l.withDefaults()
	if len(src) > l.Bytes {
		return nil, []*Error{at(1, 1, fmt.Sprintf("the file has %d bytes; at most %d are read", len(src), l.Bytes), "move large texts into files of their own")}
	}
	if e := checkUTF8(src); e != nil {
		return nil, []*Error{e}
	}
	lines := Lines(src)
	loader, err := yaml.NewLoader(bytes.NewReader(src), yaml.WithUniqueKeys(false),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(l.Depth), loaderlimits.AliasNone())))
	if err != nil {
		return nil, []*Error{at(1, 1, err.Error(), "")}
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, []*Error{syntax(err, lines)}
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, []*Error{at(second.Line, 1, "a second document begins here; a file holds one", "remove the --- line, or split the file")}
	case !errors.Is(err, io.EOF):
		return nil, []*Error{syntax(err, lines)}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	c := converter{lines: lines, limits: l, done: map[*yaml.Node]*Node{}}
	n := c.node(doc.Content[0])
	if c.fatal {
		return nil, c.errs
	}
	return n, c.errs
}

// Lines splits src at its line ends, which are left out.
func Lines(src []byte) []string {
	s := strings.ReplaceAll(string(src), "\r\n", "\n")
	return strings.Split(strings.TrimPrefix(s, "\ufeff"), "\n")
}

func at(line, col int, msg, hint string) *Error {
	return &Error{Pos: Pos{line, col}, End: Pos{line, col + 1}, Message: msg, Hint: hint}
}

func checkUTF8(src []byte) *Error {
	line, col := 1, 1
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return at(line, col, fmt.Sprintf("byte 0x%02x is not UTF-8", src[i]), "save the file as UTF-8")
		case r < 0x20 && r != '\n' && r != '\r' && r != '\t', r == 0x7f:
			return at(line, col, fmt.Sprintf("control character 0x%02x", r), "remove it; in a quoted string write it as an escape")
		case r == '\n':
			line, col = line+1, 0
		}
		i += n
		col++
	}
	return nil
}

// syntax turns an error of the library into ours. A tab that stands where indentation belongs
// is named as such, whatever the scanner made of it.
func syntax(err error, lines []string) *Error {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return at(1, 1, err.Error(), "")
	}
	line, col := le.Mark.Line, le.Mark.Column
	if line == 0 {
		line, col = le.ContextMark.Line, le.ContextMark.Column
	}
	if line < 1 {
		line, col = 1, 1
	}
	for l := line; l >= max(1, line-1); l-- {
		if l > len(lines) {
			continue
		}
		text := lines[l-1]
		if body := strings.TrimLeft(text, " "); strings.HasPrefix(body, "\t") {
			return at(l, len(text)-len(body)+1, "a tab in the indentation", "indent with spaces")
		}
	}
	msg, hint := le.Message, ""
	if strings.Contains(msg, "exceeded max depth") {
		msg, hint = "nested too deep: "+msg, "flatten the structure"
	}
	if le.ContextMsg != "" {
		msg += " (" + le.ContextMsg
		if le.ContextMark.Line > 0 && le.ContextMark.Line != line {
			msg += fmt.Sprintf(", which began at line %d", le.ContextMark.Line)
		}
		msg += ")"
	}
	if line > len(lines) || line == len(lines) && lines[line-1] == "" && line > 1 {
		// the end of the stream: point behind the last text
		for line > 1 && (line > len(lines) || lines[line-1] == "") {
			line--
		}
		col = utf8.RuneCountInString(lines[line-1]) + 1
	}
	if strings.Contains(msg, "mapping values are not allowed") {
		hint = "quote the value if it holds a colon followed by a space"
	}
	return at(line, max(col, 1), msg, hint)
}
