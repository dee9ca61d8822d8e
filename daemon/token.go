package daemon

import (
	"os"
	"strings"
	"wf/protocol"
)

// ReadToken reads the first token of a file that only its owner may read.
func ReadToken(path string) (string, error) {
	words, err := TokenWords(path)
	if err != nil {
		return "", err
	}
	return words[0], nil
}

// TokenWords are the words of the first line with a token: the token, then what it is good for.
func TokenWords(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, protocol.ErrUnauthorized.With("name the file of the token with --hub-token-file", "token: %v", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, protocol.ErrUnauthorized.With("chmod 600 "+path, "token: others can read %s", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, protocol.ErrUnauthorized.With("", "token: %v", err)
	}
	for text := range strings.Lines(string(b)) {
		text, _, _ = strings.Cut(text, "#")
		if words := strings.Fields(text); len(words) > 0 {
			return words, nil
		}
	}
	return nil, protocol.ErrUnauthorized.With("", "token: there is none in %s", path)
}
