package roles_test

import (
	"strings"
	"testing"

	"wf/roles"
)

// A key that a process reads late is hidden by the redactors that were made before, also in the middle
// of a stream; a stand-in for a key is not.
func TestAConcealedKeyIsASecretOfEveryRedactor(t *testing.T) {
	const key = "late-key-of-this-process-42"
	early, empty := roles.NewRedactor(map[string]string{"OWN": "own-secret-value"}), new(roles.Redactor)
	stream := roles.NewRedactor(nil)
	out := stream.Write(nil, []byte("a late-key of "))
	roles.Conceal("LATE_KEY", key)
	roles.Conceal("SHORT", "ollama")
	roles.Conceal("AGAIN", key)
	out = stream.Write(out, []byte("and late-key-of-this-"))
	out = stream.Flush(stream.Write(out, []byte("process-42!")))
	if got, want := string(out), "a late-key of and [secret:LATE_KEY]!"; got != want {
		t.Errorf("a stream: %q, want %q", got, want)
	}
	for name, r := range map[string]*roles.Redactor{"early": early, "empty": empty, "new": roles.NewRedactor(map[string]string{"X": "xxxxxxxxy"})} {
		if got := r.String("ollama says " + key); got != "ollama says [secret:LATE_KEY]" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := early.String("own-secret-value"); got != "[secret:OWN]" {
		t.Error(got)
	}
	if got := roles.HideKeys(strings.ToUpper("6c6174652d6b65792d6f662d746869732d70726f636573732d3432")); got != "[secret:LATE_KEY]" {
		t.Errorf("in hexadecimal: %q", got)
	}
}

func TestFindNamesWhatAStringWouldHide(t *testing.T) {
	r := roles.NewRedactor(map[string]string{"TOKEN": "a-value-of-some-length"})
	for text, want := range map[string][2]string{
		"nothing here":                     {},
		"x a-value-of-some-length":         {"TOKEN", ""},
		"x=a-value-of-some-lengt":          {},
		"AKIA2345670ABCDEFGHI is a key id": {"", "aws_key_id"},
	} {
		name, kind := r.Find(text)
		if got := [2]string{name, kind}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if (name+kind != "") != roles.HasMark(r.String(text)) {
			t.Errorf("%q: Find and String do not agree: %q", text, r.String(text))
		}
	}
}
