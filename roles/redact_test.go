package roles

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestRedactorHidesValues(t *testing.T) {
	pem := "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\nx\n-----END KEY-----\n"
	for _, test := range []struct {
		name    string
		secrets map[string]string
		in      string
		want    string
	}{
		{"a value is replaced by its name", map[string]string{"T": "hunter2"}, "pw=hunter2!", "pw=[secret:T]!"},
		{"every occurrence is", map[string]string{"T": "ab"}, "abab", "[secret:T][secret:T]"},
		{"the longer of two values wins", map[string]string{"A": "abc", "B": "abcdef"}, "abcdef abc", "[secret:B] [secret:A]"},
		{"a value that only began is kept", map[string]string{"A": "abcdef"}, "abcde", "abcde"},
		{"a restart inside a prefix is found", map[string]string{"A": "aab"}, "aaab", "a[secret:A]"},
		{"an empty value hides nothing", map[string]string{"A": ""}, "abc", "abc"},
		{"the newline at the end of a value is no part of it", map[string]string{"A": "abc\n"}, "abc.", "[secret:A]."},
		{"a line of a key is hidden on its own", map[string]string{"K": pem}, "got MIIEpAIBAAKCAQEA x", "got [secret:K] x"},
		{"a whole key is one secret", map[string]string{"K": pem}, pem + ".", "[secret:K]\n."},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := NewRedactor(test.secrets).String(test.in); got != test.want {
				t.Errorf("have %q, want %q", got, test.want)
			}
		})
	}
}

// A secret is hidden in whatever it was written into, wherever it lies there.
func TestASecretIsHiddenInOtherForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 /+?&=%\"\\~üé€")), ShortSecret, 40, -1).Filter(func(s string) bool { return strings.TrimSpace(s) == s && len(s) >= ShortSecret }).Draw(t, "value")
		before, after := rapid.StringN(0, 9, -1).Draw(t, "before"), rapid.StringN(0, 9, -1).Draw(t, "after")
		around := before + value + after
		var in string
		switch rapid.IntRange(0, 6).Draw(t, "form") {
		case 0:
			in = base64.StdEncoding.EncodeToString([]byte(around))
		case 1:
			in = base64.URLEncoding.EncodeToString([]byte(around))
		case 2:
			in = hex.EncodeToString([]byte(around))
		case 3:
			in = strings.ToUpper(hex.EncodeToString([]byte(around)))
		case 4:
			in = url.QueryEscape(around)
		case 5:
			in = url.PathEscape(around)
		case 6:
			b, err := json.Marshal(around)
			if err != nil {
				t.Fatal(err)
			}
			in = string(b)
		}
		r := NewRedactor(map[string]string{"S": value})
		whole := r.String(in)
		if !strings.Contains(whole, "[secret:S]") {
			t.Fatalf("%q in %q is shown as %q", value, in, whole)
		}
		for _, form := range texts(value) {
			if strings.Contains(whole, form) {
				t.Fatalf("%q is left in %q", form, whole)
			}
		}
		cut := rapid.IntRange(0, len(in)).Draw(t, "cut")
		once := NewRedactor(map[string]string{"S": value})
		if got := string(once.Flush(once.Write(once.Write(nil, []byte(in[:cut])), []byte(in[cut:])))); got != whole {
			t.Fatalf("%q cut at %d gives %q, whole %q", in, cut, got, whole)
		}
	})
}

func TestAShortSecretIsLookedForAsItIs(t *testing.T) {
	r := NewRedactor(map[string]string{"S": "abc"})
	if got := r.String("YWJj 616263 abc"); got != "YWJj 616263 [secret:S]" {
		t.Errorf("gives %q", got)
	}
}

// However a stream is cut, the text is that of the whole.
func TestCleanerDoesNotDependOnChunks(t *testing.T) {
	alphabet := []string{"a", "ghp_", "gh", strings.Repeat("p_0", 13), "b", "s3cr3t", "s3c", "r3t", "\r", "\n", "\r\n", "\x00", "ü", "€", "😀", "\xff", "\xe2\x82", "\ufffd"}
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOf(rapid.SampledFrom(alphabet)).Draw(t, "in"), "")
		secrets := map[string]string{"S": "s3cr3t", "E": "€"}
		whole := NewCleaner(NewRedactor(secrets))
		want := whole.Text([]byte(in), true)

		cut := NewCleaner(NewRedactor(secrets))
		var got strings.Builder
		for rest := []byte(in); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got.WriteString(cut.Text(rest[:n], false))
			rest = rest[n:]
		}
		got.WriteString(cut.Text(nil, true))
		if got.String() != want {
			t.Fatalf("in chunks %q, whole %q", got.String(), want)
		}
		if !utf8.ValidString(want) || strings.Contains(want, "\x00") || strings.Contains(want, "s3cr3t") {
			t.Fatalf("not clean: %q", want)
		}
	})
}

// What a cleaner leaves out or replaces cannot carry a secret past it.
func TestCleanerHidesWhatItJoins(t *testing.T) {
	long := strings.Repeat("k", 20) + "\n" + strings.Repeat("l", 20)
	for _, test := range []struct{ name, secret, in, want string }{
		{"a NUL within a secret", "s3cr3t", "a s3c\x00r3t b", "a [secret:S] b"},
		{"NULs all over it", "s3cr3t", "s\x003\x00c\x00r\x003\x00t\x00", "[secret:S]"},
		{"a NUL within a shape", "", "ghp_" + strings.Repeat("p0", 9) + "\x00" + strings.Repeat("p0", 9), "[redacted:github_token]"},
		{"CRLF where the secret has LF", long, strings.ReplaceAll(long, "\n", "\r\n"), "[secret:S]"},
		{"LF where the secret has CRLF", strings.ReplaceAll(long, "\n", "\r\n"), long, "[secret:S]"},
		{"short lines with CRLF", "ab\ncd", "ab\r\ncd", "[secret:S]"},
		{"a secret that is not UTF-8", "ab\xffcd", "ab\xffcd", "[secret:S]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			secrets := map[string]string{"S": test.secret}
			if got := NewCleaner(NewRedactor(secrets)).Text([]byte(test.in), true); got != test.want {
				t.Errorf("have %q, want %q", got, test.want)
			}
		})
	}
}

// Texts that are kept with their CRLF, and read with LF later, hide a secret all the same.
func TestRedactorFindsSecretsWhateverTheirLineEnds(t *testing.T) {
	for _, secret := range []string{"ab\ncd\n", "ab\r\ncd\r\n"} {
		r := NewRedactor(map[string]string{"S": secret})
		for _, in := range []string{"ab\ncd", "ab\r\ncd", `ab\ncd`, `ab\r\ncd`} {
			if got := r.String(in); got != "[secret:S]" {
				t.Errorf("%q in %q: have %q", secret, in, got)
			}
		}
	}
}

func TestCleanerNormalises(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb":                      "a\nb",
		"10%\r20%":                    "10%\r20%",
		"end\r":                       "end\r",
		"a\x00b":                      "ab",
		"ghp_\x00" + alphanumeric(36): "[redacted:github_token]",
		"\xff\xfe":                    "\ufffd\ufffd",
		"a\xe2\x82":                   "a\ufffd\ufffd",
		"\ufffd is ok":                "\ufffd is ok",
	} {
		c := NewCleaner(NewRedactor(nil))
		if got := c.Text([]byte(in), true); got != want {
			t.Errorf("%q: have %q, want %q", in, got, want)
		}
	}
}

// A window holds the beginning and the end, and counts what it dropped to the byte.
func TestKeeperKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.StringOfN(rapid.SampledFrom([]rune("abü€😀")), 1, 9, -1)).Draw(t, "parts")
		k := window{max: 16}
		for _, p := range parts {
			k.write(p)
			if len(k.head) > 8 || cap(k.tail) > 96 {
				t.Fatalf("unbounded: head %d, tail %d", len(k.head), cap(k.tail))
			}
		}
		in, got := strings.Join(parts, ""), k.String()
		if len(in) <= 8 && got != in {
			t.Fatalf("have %q, want all of %q", got, in)
		}
		if k.gone == 0 {
			if got != in {
				t.Fatalf("have %q, want %q", got, in)
			}
			return
		}
		mark := fmt.Sprintf("\n…[%d bytes dropped]…\n", k.gone)
		head, tail, ok := strings.Cut(got, mark)
		if !ok || !strings.HasPrefix(in, head) || !strings.HasSuffix(in, tail) || int64(len(head)+len(tail))+k.gone != int64(len(in)) {
			t.Fatalf("%q does not hold both ends of %q", got, in)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("a rune was cut: %q", got)
		}
	})
}
