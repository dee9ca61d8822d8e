package roles

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// shownAs are ways in which programs show the lines of a file.
var shownAs = map[string]func(n int, line string) string{
	"as it is":                func(_ int, l string) string { return l },
	"in YAML":                 func(_ int, l string) string { return "          " + l },
	"behind tabs":             func(_ int, l string) string { return "\t\t" + l },
	"quoted":                  func(_ int, l string) string { return "> " + l },
	"quoted twice":            func(_ int, l string) string { return "> > " + l },
	"by cat -n":               func(n int, l string) string { return fmt.Sprintf("%6d\t%s", n, l) },
	"by grep -n":              func(n int, l string) string { return fmt.Sprintf("%d:%s", n, l) },
	"by grep -Hn":             func(n int, l string) string { return fmt.Sprintf("deploy/id.pem:%d:%s", n, l) },
	"by grep -A":              func(n int, l string) string { return fmt.Sprintf("id.pem-%d-%s", n, l) },
	"behind a bar":            func(n int, l string) string { return fmt.Sprintf("%4d │ %s", n, l) },
	"behind an arrow":         func(n int, l string) string { return fmt.Sprintf("%d→%s", n, l) },
	"in a log":                func(_ int, l string) string { return "2026-01-02T03:04:05Z [out] " + l },
	"in colour":               func(_ int, l string) string { return "\x1b[32m" + l + "\x1b[0m" },
	"as a list":               func(_ int, l string) string { return "    - " + l },
	"as a comment of Lisp":    func(_ int, l string) string { return ";; " + l },
	"as a comment of SQL":     func(_ int, l string) string { return "-- " + l },
	"as a diff":               func(_ int, l string) string { return "+" + l },
	"as strings":              func(_ int, l string) string { return `"` + l + `\n" +` },
	"in HTML":                 func(_ int, l string) string { return l + "<br>" },
	"with carriage returns":   func(_ int, l string) string { return l + "\r" },
	"by a program of its own": func(n int, l string) string { return fmt.Sprintf("#%d [%s]", n, l) },
}

// F-40: a private key is hidden however its lines are shown, and what follows it is not. What is given
// does not depend on where the stream is cut.
func TestAPrivateKeyIsHiddenHoweverItIsShown(t *testing.T) {
	for _, lines := range []int{1, 25} {
		key := pemKey("RSA PRIVATE KEY", lines)
		for name, show := range shownAs {
			var b strings.Builder
			b.WriteString("before\n")
			for i, l := range strings.Split(key, "\n") {
				b.WriteString(show(i+1, l) + "\n")
			}
			b.WriteString("after the key\n")
			got := new(Redactor).String(b.String())
			if strings.Contains(got, alphanumeric(62)) || strings.Contains(got, "Zm9vYmFy") || !strings.Contains(got, "before") || !strings.Contains(got, "after the key") {
				t.Errorf("%d lines %s: %q", lines, name, got)
			}
			for _, size := range []int{1, 7, 300} {
				r, out := new(Redactor), []byte(nil)
				for in := b.String(); len(in) > 0; {
					n := min(size, len(in))
					out, in = r.Write(out, []byte(in[:n])), in[n:]
				}
				if out = r.Flush(out); string(out) != got {
					t.Errorf("%d lines %s, %d bytes at a time: %q, want %q", lines, name, size, out, got)
				}
			}
		}
		for name, sep := range map[string]string{"in an address": "%0A", "in XML": "&#10;", "with bars": "|", "in JSON": `\n`, "in JSON twice": `\\n`, "without line ends": ""} {
			if got := new(Redactor).String("k=" + strings.ReplaceAll(key, "\n", sep) + " z"); strings.Contains(got, alphanumeric(62)) || !strings.HasSuffix(got, " z") {
				t.Errorf("%d lines %s: %q", lines, name, got)
			}
		}
	}
}

// A private key is hidden in the Base64 of any text that holds it, in both alphabets, and when it was
// encoded twice; a certificate is not.
func TestAPrivateKeyIsHiddenInBase64(t *testing.T) {
	key := pemKey("PRIVATE KEY", 9) + "\n"
	for _, before := range []string{"", "x", "xy", `{"key":"`, `{"a":"`, `{"ab":"`} {
		for name, encode := range map[string]func(string) string{
			"std": std,
			"url": func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
		} {
			in := encode(before + key)
			if got := new(Redactor).String("v: " + in + " z"); !strings.HasSuffix(got, "[redacted:private_key] z") || strings.Contains(got, in[40:80]) {
				t.Errorf("%s behind %q: %q", name, before, got)
			}
		}
	}
	twice := std(std(key))
	if got := new(Redactor).String(twice); got != "[redacted:private_key]" {
		t.Errorf("twice: %q", got)
	}
	for _, open := range []string{std(pemKey("CERTIFICATE", 9)), std("x" + pemKey("CERTIFICATE", 9)), std(std(pemKey("CERTIFICATE", 9)))} {
		if got := new(Redactor).String(open); got != open {
			t.Errorf("a certificate: %q", got)
		}
	}
}

// What speaks of keys holds none, and a stream of it goes on.
func TestATextAboutPrivateKeysIsShown(t *testing.T) {
	for _, text := range []string{
		"A file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----, say the docs.\n",
		"-----BEGIN PRIVATE KEY-----\n(paste it here)\n-----END PRIVATE KEY-----\n",
		"grep -l -e '-----BEGIN RSA PRIVATE KEY-----' -r /home/ada/projects\n" + strings.Repeat("nothing was found there\n", 40),
	} {
		if got := new(Redactor).String(text); got != text {
			t.Errorf("%q gives %q", text, got)
		}
	}
	r := new(Redactor)
	out := r.Write(nil, []byte("look for -----BEGIN RSA PRIVATE KEY-----\nfirst\nsecond\nthird\nfourth\nfifth\n"))
	if !strings.Contains(string(out), "second") {
		t.Errorf("held back: %q", out)
	}
}

// F-40: tokens of npm, Docker and Kubernetes.
func TestTokensOfConfigFilesAreHidden(t *testing.T) {
	for _, in := range []string{
		"//npm.pkg.github.com/:_authToken=abcdefabcdef1234567890", `_authToken = "abcdefabcdefabcdef"`,
		`{"auths": {"r.io": {"identitytoken": "abcdefghijklm1234567890"}}}`, `\"registrytoken\":\"abcdefghijklm1234567890\"`,
		".dockerconfigjson: " + std(`{"auths":{"r.io":{"auth":"`+std("ada:s3cr3tpass")+`"}}}`),
		".dockerconfigjson: " + std("{\n\t\"auths\": {\n\t\t\"r.io\": {\n\t\t\t\"auth\": \""+std("ada:s3cr3tpass")+"\"\n"),
		"      id-token: abc123DEF456ghi789jkl0", "      refresh-token: abc123DEF456ghi789jkl0", "    token: abcdef.0123456789abcdef",
		"kubectl --token=abc123DEF456ghi789jkl0 get pods",
	} {
		if got := new(Redactor).String(in + "\n"); !HasMark(got) {
			t.Errorf("%q is shown", in)
		}
	}
	for _, in := range []string{"_authToken=${NPM_TOKEN}", "//r/:_authToken=<your token>", `"identitytoken": "changeme"`, "token: the-name-of-a-thing-that-is-long", "--token=$TOKEN"} {
		if got := new(Redactor).String(in + "\n"); HasMark(got) {
			t.Errorf("%q gives %q", in, got)
		}
	}
}
