package tool

import (
	"bytes"
	"strings"

	"wf/files"
	"wf/protocol/lazy"
	"wf/roles"
	"wf/roles/workspace"
)

// keyMark takes the place of the rest of a private key when its beginning is not shown.
const keyMark = "[redacted:private_key]\n"

var (
	keyWord  = []byte("PRIVATE KEY")
	keyBegin = []byte("-----BEGIN ")
	keyEnd   = []byte("-----END ")

	keyHeaders = [][]byte{[]byte("Proc-Type: "), []byte("DEK-Info: "), []byte("Version: "), []byte("Comment: ")}
)

// keyLines follows the lines of a file and tells which belong to a private key in PEM form: a
// part of one has no shape by which it could be known.
type keyLines struct {
	open bool
	body bool // something of it was seen
}

// hold takes the next line, and reports whether it belongs to a key that began before it.
func (k *keyLines) hold(line []byte) bool {
	was := k.open
	if bytes.Contains(line, keyWord) {
		k.open, k.body = bytes.LastIndex(line, keyBegin) > bytes.LastIndex(line, keyEnd), false
		return was
	}
	if !k.open {
		return false
	}
	blank := len(bytes.TrimSpace(line)) == 0
	k.open = blank && k.body || !blank && isKeyLine(line)
	k.body = k.open
	return k.open
}

// isKeyLine reports whether a line can stand within a key: Base64, perhaps as a string of a
// program or in a quotation, or a header.
func isKeyLine(line []byte) bool {
	line = bytes.TrimRight(bytes.TrimSpace(line), `"'`+"`"+` ,+\nr`)
	line = roles.Unmarked(line)
	for _, header := range keyHeaders {
		if bytes.HasPrefix(line, header) {
			return true
		}
	}
	for _, c := range line {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=') {
			return false
		}
	}
	return true
}

var mark = lazy.Regexp(`\[(?:secret|redacted):[A-Za-z0-9_]+\]`)

// overHidden refuses text with marks that stand, in the file it would be written to, for a
// secret: the secret would be lost.
func overHidden(p *workspace.Place, at Workspace, name, text string) Result {
	if !roles.HasMark(text) {
		return Result{}
	}
	f, err := p.Open()
	if err != nil {
		return Result{} // nothing to lose, or writing tells why
	}
	defer f.Close()
	b, err := files.Bounded(f, editMax)
	if err != nil {
		return why(name, err)
	}
	plain := string(b)
	shown := at.clean(plain)
	for _, m := range mark().FindAllString(text, -1) {
		if strings.Count(shown, m) > strings.Count(plain, m) {
			return Failed("%s stands for a secret in %s, which would be lost; change the lines around it with edit_file", m, name)
		}
	}
	return Result{}
}
