package protocol

import "strings"

// What ${{ secrets.NAME }} renders to: a reference between two NUL bytes, which occur in no
// text of a command, a model or a person. Only the performer of a command puts the value in
// its place, in the environment of that command; it is never stored, shown or sent.
const (
	secretOpen  = "\x00secret:"
	secretClose = "\x00"
)

// SecretRef is the reference to the secret of that name, as Turn.Env has it.
func SecretRef(name string) string { return secretOpen + name + secretClose }

// ExpandSecrets puts the values of secrets in the place of their references. lookup tells
// the value and whether there is one; a secret without a value stays a reference and is
// listed in missing.
func ExpandSecrets(s string, lookup func(name string) (string, bool)) (out string, missing []string) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, secretOpen)
		b.WriteString(before)
		if !ok {
			return b.String(), missing
		}
		name, after, ok := strings.Cut(rest, secretClose)
		if !ok {
			b.WriteString(secretOpen + rest)
			return b.String(), missing
		}
		value, found := lookup(name)
		if !found {
			value = SecretRef(name)
			missing = append(missing, name)
		}
		b.WriteString(value)
		s = after
	}
}
