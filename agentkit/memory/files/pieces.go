package files

import (
	"go/scanner"
	"go/token"
	"path"
	"strings"
)

// Piece is a part of a file: the lines Line to End, counted from 1.
type Piece struct {
	Line, End int
	Text      string // without empty lines at its ends
}

// Pieces cuts a file into what belongs together. Every line that is not empty is in exactly one
// piece.
func Pieces(f File) []Piece {
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(f.Text, "\r\n", "\n"), "\n"), "\n")
	var starts []int // lines, from 0, at which something begins
	if path.Ext(f.Name) == ".go" {
		starts = declarations(f.Text)
	}
	if starts == nil {
		starts = paragraphs(lines)
	}
	var out []Piece
	for _, span := range joined(lines, starts) {
		out = append(out, split(lines, span[0], span[1])...)
	}
	return out
}

// declarations are the first lines of the declarations of a Go file, with their comments; nil for a file whose tokens are not those
// of Go. Tokens alone tell them: the parser of Go would be a hundredth of the program.
func declarations(text string) []int {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	starts := []int{0}
	depth, begins, any := 0, true, false // of brackets; a declaration may begin; there was a token
	last, doc, docEnd := 0, 0, -1        // line of the last token; lines of the comments in front of the next one
	for {
		pos, tok, lit := s.Scan()
		line := file.PositionFor(pos, false).Line
		switch {
		case tok == token.EOF:
			if s.ErrorCount > 0 || depth != 0 || !any {
				return nil
			}
			return starts
		case tok == token.COMMENT:
			if line > docEnd+1 || docEnd == last {
				doc = line
			}
			docEnd = line + strings.Count(lit, "\n")
			if line == last { // behind something
				doc, docEnd = 0, line
			}
			continue
		case tok == token.SEMICOLON && lit == "\n": // a line end
			begins = depth == 0
			continue
		case !any && tok != token.PACKAGE:
			return nil
		case begins && depth == 0 && (tok == token.FUNC || tok == token.VAR || tok == token.CONST || tok == token.TYPE):
			if doc > 0 && docEnd == line-1 {
				line = doc
			}
			starts = append(starts, line-1)
		case tok == token.LBRACE || tok == token.LPAREN || tok == token.LBRACK:
			depth++
		case tok == token.RBRACE || tok == token.RPAREN || tok == token.RBRACK:
			if depth--; depth < 0 {
				return nil
			}
		}
		last, any, begins = file.PositionFor(pos, false).Line+strings.Count(lit, "\n"), true, tok == token.SEMICOLON && depth == 0
	}
}

// paragraphs are the first lines behind empty ones, and headings.
func paragraphs(lines []string) []int {
	starts := []int{0}
	for i := 1; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) != "" && strings.TrimSpace(lines[i-1]) == "" {
			starts = append(starts, i)
		}
	}
	return starts
}

// joined makes spans of lines from where things begin; small neighbours go together.
func joined(lines []string, starts []int) [][2]int {
	var out [][2]int
	for i, from := range starts {
		to := len(lines)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		if from >= to {
			continue
		}
		if n := len(out); n > 0 {
			last := out[n-1]
			small := last[1]-last[0] < pieceSmall || to-from < pieceSmall
			if small && to-last[0] <= pieceLines && size(lines[last[0]:to]) <= pieceMax {
				out[n-1][1] = to
				continue
			}
		}
		out = append(out, [2]int{from, to})
	}
	return out
}

func size(lines []string) int {
	n := 0
	for _, l := range lines {
		n += len(l) + 1
	}
	return n
}

// split cuts a span that is too long, at empty lines where there are some.
func split(lines []string, from, to int) []Piece {
	var out []Piece
	for {
		for from < to && strings.TrimSpace(lines[from]) == "" {
			from++
		}
		for to > from && strings.TrimSpace(lines[to-1]) == "" {
			to--
		}
		if from == to {
			return out
		}
		end := cutAt(lines, from, to)
		text := lines[from:end]
		for len(text) > 1 && strings.TrimSpace(text[len(text)-1]) == "" {
			text = text[:len(text)-1]
		}
		out = append(out, Piece{Line: from + 1, End: from + len(text), Text: strings.Join(text, "\n")})
		from = end
	}
}

// cutAt is where a piece that begins at from ends: at to, or at the last empty line within its
// bounds, or at its bounds.
func cutAt(lines []string, from, to int) int {
	most, bytes := from, 0
	for most < to && most-from < 2*pieceLines {
		if bytes += len(lines[most]) + 1; bytes > pieceMax && most > from {
			break
		}
		most++
	}
	if most == to {
		return to
	}
	for at := most; at > from+pieceSmall; at-- {
		if strings.TrimSpace(lines[at]) == "" {
			return at
		}
	}
	return most
}
