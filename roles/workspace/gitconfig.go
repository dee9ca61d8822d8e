package workspace

import (
	"io"
	"iter"
	"path/filepath"
	"strings"
)

// SystemGitConfig is the config of git that all users of a machine have.
const SystemGitConfig = "/etc/gitconfig"

// UserGitConfigs are the configs of git of the user with an environment, in the order in which git reads them, absolute. They need not be there.
func UserGitConfigs(lookup func(string) (string, bool)) (out []string) {
	if file, _ := lookup("GIT_CONFIG_GLOBAL"); filepath.IsAbs(file) {
		return []string{file}
	}
	home, _ := lookup("HOME")
	if config, _ := lookup("XDG_CONFIG_HOME"); filepath.IsAbs(config) {
		out = append(out, filepath.Join(config, "git/config"))
	} else if home != "" {
		out = append(out, filepath.Join(home, ".config/git/config"))
	}
	if home != "" {
		out = append(out, filepath.Join(home, ".gitconfig"))
	}
	return out
}

// GitConfig reads a git config by the grammar of git-config(1): its keys in small letters, such as user.name,
// with the values that are set, in their order; of most keys the last one counts. The name of a subsection
// stands between the two parts, as it is written. Where git finds a fault it reads nothing at all; then the values before that are
// given.
func GitConfig(r io.Reader) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		b, _ := io.ReadAll(r) // what could be read
		c := configText(strings.ReplaceAll(strings.TrimPrefix(string(b), "\ufeff"), "\r\n", "\n") + "\n")
		section := "" // with the dot behind it
		for c != "" {
			switch ch := c.next(); {
			case isBlank(ch):
			case ch == '#', ch == ';':
				c.line()
			case ch == '[':
				var ok bool
				if section, ok = c.section(); !ok {
					return
				}
			default:
				key, ok := c.key(ch)
				if !ok {
					return
				}
				set := c.peek() == '=' // else it is true
				value := ""
				if set {
					c.next()
					if value, ok = c.value(); !ok {
						return
					}
				} else if c.next() != '\n' {
					return
				}
				if set && !yield(section+key, value) {
					return
				}
			}
		}
	}
}

// configText is the rest of a config, which ends with a line.
type configText string

// next takes a character; behind the last one it is the end of a line.
func (c *configText) next() byte {
	ch := c.peek()
	if *c != "" {
		*c = (*c)[1:]
	}
	return ch
}

func (c *configText) peek() byte {
	if *c == "" {
		return '\n'
	}
	return (*c)[0]
}

// line takes the rest of a line.
func (c *configText) line() string {
	line, rest, _ := strings.Cut(string(*c), "\n")
	*c = configText(rest)
	return line
}

func isBlank(ch byte) bool { return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r' }

func isKey(ch byte) bool {
	return ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '-'
}

// section reads a heading behind its bracket.
func (c *configText) section() (name string, ok bool) {
	for {
		switch ch := c.next(); {
		case ch == ']':
			return strings.ToLower(name) + ".", true
		case isKey(ch), ch == '.':
			name += string(ch)
		case ch != '\n' && isBlank(ch):
			sub, ok := c.subsection()
			return strings.ToLower(name) + "." + sub + ".", ok
		default:
			return "", false
		}
	}
}

// subsection reads its name in quotes, and the end of the heading.
func (c *configText) subsection() (name string, ok bool) {
	ch := c.next()
	for ch != '\n' && isBlank(ch) {
		ch = c.next()
	}
	if ch != '"' {
		return "", false
	}
	for {
		switch ch = c.next(); ch {
		case '\n':
			return "", false
		case '"':
			return name, c.next() == ']'
		case '\\':
			if ch = c.next(); ch == '\n' {
				return "", false
			}
		}
		name += string([]byte{ch})
	}
}

// key reads the name of a variable, of which the first character was taken, and the blanks behind it.
func (c *configText) key(first byte) (name string, ok bool) {
	if !isKey(first) || first == '-' || first >= '0' && first <= '9' {
		return "", false
	}
	name = string(first)
	for isKey(c.peek()) {
		name += string(c.next())
	}
	for c.peek() == ' ' || c.peek() == '\t' {
		c.next()
	}
	return strings.ToLower(name), true
}

// value reads what follows =: blanks at its ends are none of it, unless they stand in quotes. It may go on in the next line.
func (c *configText) value() (string, bool) {
	var b []byte
	quoted, end := false, 0 // end is where the last byte that is not blank ends
	for {
		ch := c.next()
		switch {
		case ch == '\n':
			return string(b[:end]), !quoted
		case isBlank(ch) && !quoted:
			if len(b) > 0 {
				b = append(b, ch)
			}
			continue
		case !quoted && (ch == '#' || ch == ';'):
			c.line()
			return string(b[:end]), true
		case ch == '"':
			quoted = !quoted
			end = len(b)
			continue
		case ch == '\\':
			end = len(b) // blanks before it stay
			switch ch = c.next(); ch {
			case '\n':
				continue
			case 't':
				ch = '\t'
			case 'n':
				ch = '\n'
			case 'b':
				ch = '\b'
			case '"', '\\':
			default:
				return "", false
			}
		}
		b = append(b, ch)
		end = len(b)
	}
}
