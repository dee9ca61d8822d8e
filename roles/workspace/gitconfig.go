package workspace

import (
	"bufio"
	"io"
	"iter"
	"strings"
)

// GitConfig reads a git config, as git-config(1) writes it: its keys in small letters, such as user.name,
// with the values that are set, in their order; of most keys the last one counts. The name of a subsection
// stands between the two parts, as it is written. A value goes to the end of its line.
func GitConfig(r io.Reader) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		section := ""
		for lines := bufio.NewScanner(r); lines.Scan(); {
			line := strings.TrimSpace(lines.Text())
			if rest, ok := strings.CutPrefix(line, "["); ok {
				section, line = gitSection(rest)
			}
			key, value, ok := strings.Cut(line, "=")
			key = strings.ToLower(strings.TrimSpace(key))
			if ok && key != "" && key[0] != '#' && key[0] != ';' && !yield(section+"."+key, gitValue(strings.TrimSpace(value))) {
				return
			}
		}
	}
}

// gitSection reads the rest of a heading: its name, and what follows on the line.
func gitSection(s string) (section, rest string) {
	name, rest, _ := strings.Cut(s, "]")
	if before, quoted, ok := strings.Cut(s, `"`); ok && !strings.Contains(before, "]") {
		sub, after, _ := strings.Cut(quoted, `"`)
		_, rest, _ = strings.Cut(after, "]")
		return strings.ToLower(strings.TrimSpace(before)) + "." + sub, strings.TrimSpace(rest)
	}
	return strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(rest)
}

// gitValue takes the quotes, escapes and the comment off a value.
func gitValue(s string) string {
	var b strings.Builder
	quoted, end := false, 0 // end is where the last byte that is not blank ends
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
			end = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			return b.String()[:end]
		case c == '\\' && i+1 < len(s): // of a quote or a backslash; others mean nothing in a name
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
		if c := s[i]; quoted || c != ' ' && c != '\t' {
			end = b.Len()
		}
	}
	return b.String()[:end]
}
