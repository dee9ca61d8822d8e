package roles

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// A writer gives the pieces of a text as a program may write them; between two pieces something that is not shown may
// stand.
type writer func(text string) []string

func eachRune(write func(r rune) string) writer {
	return func(text string) (out []string) {
		for _, r := range text {
			out = append(out, write(r))
		}
		return out
	}
}

func eachByte(write func(c byte) string) writer {
	return eachRune(func(r rune) (out string) {
		for _, c := range []byte(string(r)) {
			out += write(c)
		}
		return out
	})
}

func quotedJSON(r rune) string {
	b, err := json.Marshal(string(r))
	if err != nil {
		panic(err)
	}
	return string(b[1 : len(b)-1])
}

func inUnits(r rune, form string) (out string) {
	for _, u := range utf16.Encode([]rune{r}) {
		out += fmt.Sprintf(form, u)
	}
	return out
}

// percentedBut keeps some bytes as they are, besides letters and digits.
func percentedBut(kept, form string) writer {
	return eachByte(func(c byte) string { return percent(kept, form, c) })
}

func percent(kept, form string, c byte) string {
	if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(kept, c) >= 0 {
		return string(rune(c))
	}
	return fmt.Sprintf(form, c)
}

// writers are the ways in which a secret is written, each with what reads it again.
var writers = map[string]struct {
	write writer
	read  func(string) (string, error)
}{
	"as it is":     {eachRune(func(r rune) string { return string(r) }), nil},
	"with CRLF":    {eachRune(func(r rune) string { return strings.ReplaceAll(string(r), "\n", "\r\n") }), nil},
	"JSON of Go":   {eachRune(quotedJSON), unquotedJSON},
	"JSON of JSON": {eachRune(func(r rune) string { return strings.Join(eachRune(quotedJSON)(quotedJSON(r)), "") }), nil},
	"JSON with slashes": {eachRune(func(r rune) string {
		if r == '/' {
			return `\/`
		}
		return quotedJSON(r)
	}), unquotedJSON},
	"JSON in ASCII": {eachRune(func(r rune) string {
		if r < utf8.RuneSelf {
			return quotedJSON(r)
		}
		return inUnits(r, `\u%04x`)
	}), unquotedJSON},
	"all in \\u":            {eachRune(func(r rune) string { return inUnits(r, `\u%04x`) }), unquotedJSON},
	"all in \\U":            {eachRune(func(r rune) string { return inUnits(r, `\u%04X`) }), unquotedJSON},
	"all in \\x":            {eachByte(func(c byte) string { return fmt.Sprintf(`\x%02x`, c) }), unquotedGo},
	"all in octal":          {eachByte(func(c byte) string { return fmt.Sprintf(`\%03o`, c) }), unquotedGo},
	"address with slashes":  {percentedBut("/-_.~", "%%%02X"), url.PathUnescape},
	"address":               {percentedBut("-_.~", "%%%02X"), url.PathUnescape},
	"address in lower case": {percentedBut("-_.~", "%%%02x"), url.PathUnescape},
	"form": {eachByte(func(c byte) string {
		if c == ' ' {
			return "+"
		}
		return percent("-_.", "%%%02X", c)
	}), url.QueryUnescape},
	"all in %": {eachByte(func(c byte) string { return fmt.Sprintf("%%%02X", c) }), url.PathUnescape},
	"behind backslashes": {eachRune(func(r rune) string {
		if strings.ContainsRune(` "'$&<>/+=%;~`+"\\", r) {
			return `\` + string(r)
		}
		return string(r)
	}), nil},
}

func unquotedJSON(s string) (out string, err error) {
	return out, json.Unmarshal([]byte(`"`+s+`"`), &out)
}

func unquotedGo(s string) (string, error) {
	return strconv.Unquote(`"` + s + `"`)
}

// notShown are what may stand within a text unseen.
var notShown = []string{
	"\x1b[31m", "\x1b[0m", "\x1b[m\x1b[K", "\x1b[38;2;255;100;0m", "\x1b]0;a title\a", "\x1b]8;;https://example.com/a?b=c\x1b\\", "\x1b(B", "\x1b7", "\u009b1m",
	"\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u2066", "\ufe0f", "\U000e0041", "\u180e", "\u3164",
}

// notShownWritten are the same in a text that is written in escapes.
var notShownWritten = append([]string{`\u200b`, `\u00ad`, `\u001b[31m`, `\x1b[0m`, `\033[1m`, `\u001b]8;;http://a/b\u001b\\`, `\u001b]0;title\u0007`}, notShown...)

var plainly = regexp.MustCompile("\x1b\\][^\a\x1b]*(?:\a|\x1b\\\\)|(?:\x1b\\[|\u009b)[0-9;]*[A-Za-z]|\x1b\\(B|\x1b7|[\u00ad\u034f\u180e\u200b-\u200f\u2060-\u206f\u3164\ufe0f\ufeff\U000e0041]|" +
	`\\u200b|\\u00ad|(?:\\u001b|\\x1b|\\033)\[[0-9;]*m`)

// shown is a text without what is not shown.
func shown(s string) string { return plainly.ReplaceAllString(s, "") }

var aroundPieces = []string{"log: ", "a", "Zq", " ", "\n", "é", "世界", "=", ";", "{", "]", "0", ". ", "\x1b[1m", "\u200b", "[red]", "key", "<b>"}

func drawAround(t *rapid.T, name string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(aroundPieces), 0, 6).Draw(t, name), "")
}

// drawSecret is one that is looked for in every form, and does not end or begin so that what stands beside it decides how it
// is read.
func drawSecret(t *rapid.T) string {
	pieces := []string{"a", "Q", "7", "_", " ", "\"", "'", "\\", "/", "<", ">", "&", "+", "%", "=", "é", "€", "😀", "\n", "\t", `\b`, `\n`, `\\`, "%41", "xyz", "\\u0041", "--"}
	return rapid.Custom(func(t *rapid.T) string {
		return "k" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 8, 20).Draw(t, "pieces"), "") + "Z"
	}).Draw(t, "secret")
}

// drawChunks gives a text to a Redactor in chunks that are cut anywhere.
func drawChunks(t *rapid.T, r *Redactor, in string) string {
	var out []byte
	for rest := []byte(in); len(rest) > 0; {
		n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "chunk")
		out, rest = r.Write(out, rest[:n]), rest[n:]
	}
	return string(r.Flush(out))
}

// However the characters of a secret are written, and whatever stands unseen between them, it is hidden and all else stays.
func TestASecretIsHiddenHoweverItIsWritten(t *testing.T) {
	for name, way := range writers {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				secret := drawSecret(t)
				pieces := way.write(secret)
				if way.read != nil {
					if got, err := way.read(strings.Join(pieces, "")); err != nil || got != secret {
						t.Fatalf("the model writes %q as %q, which is read as %q: %v", secret, pieces, got, err)
					}
				}
				unseen := notShown
				if strings.HasPrefix(name, "all in \\") || name == "JSON in ASCII" {
					unseen = notShownWritten
				}
				if rapid.Bool().Draw(t, "unseen") {
					for i := range pieces[1:] {
						if rapid.IntRange(0, 2).Draw(t, "here") == 0 {
							pieces[i] += rapid.SampledFrom(unseen).Draw(t, "not shown")
						}
					}
				}
				before, after := drawAround(t, "before"), drawAround(t, "after")
				in := before + strings.Join(pieces, "") + after
				secrets := map[string]string{"S": secret}
				if got, want := drawChunks(t, NewRedactor(secrets), in), before+"[secret:S]"+after; got != want {
					t.Fatalf("%q in %q:\n have %q,\n want %q", secret, in, got, want)
				}
			})
		})
	}
}

// A line of a secret is hidden alone, however it is written.
func TestALineOfASecretIsHiddenHoweverItIsWritten(t *testing.T) {
	for name, way := range writers {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				line := "line" + strings.ReplaceAll(drawSecret(t), "\n", "")
				before, after := drawAround(t, "before"), drawAround(t, "after")
				in := before + strings.Join(way.write(line), "") + after
				r := NewRedactor(map[string]string{"S": "-- the first line\n  " + line + "\r\n-- the last one\n"})
				if got, want := drawChunks(t, r, in), before+"[secret:S]"+after; got != want {
					t.Fatalf("%q in %q:\n have %q,\n want %q", line, in, got, want)
				}
			})
		})
	}
}

// What holds a secret in Base64 or hexadecimal, also with what is not shown in it, cannot be decoded to it any more.
func TestNoDecodingGivesASecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := drawSecret(t)
		around := drawAround(t, "before") + secret + drawAround(t, "after")
		var text string
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			text = base64.StdEncoding.EncodeToString([]byte(around))
		case 1:
			text = base64.RawURLEncoding.EncodeToString([]byte(around))
		case 2:
			text = hex.EncodeToString([]byte(around))
		case 3:
			text = strings.ToUpper(hex.EncodeToString([]byte(around)))
		}
		pieces := strings.Split(text, "")
		for i := range pieces[1:] {
			if rapid.IntRange(0, 9).Draw(t, "here") == 0 {
				pieces[i] += rapid.SampledFrom(notShown).Draw(t, "not shown")
			}
		}
		got := drawChunks(t, NewRedactor(map[string]string{"S": secret}), strings.Join(pieces, ""))
		if !strings.Contains(got, "[secret:S]") {
			t.Fatalf("%q in %q is shown as %q", secret, text, got)
		}
		for _, part := range strings.Split(shown(got), "[secret:S]") {
			for cut := range 4 {
				rest := part[min(cut, len(part)):]
				for _, decode := range []func(string) ([]byte, error){base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString, hex.DecodeString} {
					for short := range 4 {
						if b, err := decode(strings.TrimRight(rest[:max(0, len(rest)-short)], "=")); err == nil && strings.Contains(string(b), secret) {
							t.Fatalf("%q is in %q", secret, got)
						}
					}
				}
			}
		}
	})
}

// What the echo of a shell makes of a secret is hidden, and all else stays.
func TestWhatEchoMakesOfASecretIsHidden(t *testing.T) {
	for secret, echoes := range map[string][]string{
		`pass\bword-1`:           {"pass\bword-1"},
		`pass\word\new\time`:     {"pass\\word\new\time"},
		`a\\b\\\\c-1234`:         {`a\b\\c-1234`},
		`\a\f\v\r-tone-1234`:     {"\a\f\v\r-tone-1234"},
		`octal \0101\102-1234`:   {"octal AB-1234"},
		`the rest\cis not shown`: {"the rest"},
		`wide \x41\u00e9-1234`:   {"wide Aé-1234", `wide \x41\u00e9-1234`},
		`esc \e[31mred\e[0m-123`: {"esc \x1b[31mred\x1b[0m-123", "esc red-123"},
		`bytes \303\251-123456`:  {"bytes é-123456"},
		`line\none-is-long\nz`:   {"line\none-is-long\nz", "none-is-long"[1:]},
	} {
		for _, echo := range echoes {
			for _, in := range []string{echo, strings.Join(eachRune(quotedJSON)(echo), "")} {
				if got := inChunksOf(3, secret, "x: "+in+" y"); got != "x: [secret:S] y" {
					t.Errorf("%q in %q is shown as %q", secret, in, got)
				}
			}
		}
	}
	for _, short := range []string{`a\bc`, `\b\b\b\b`, `ab\cdefgh`} {
		for _, text := range []string{"a\bc", "\b\b\b\b", "ab", "ac"} {
			if got := inChunksOf(3, short, text); got != text {
				t.Errorf("%q: %q is shown as %q", short, text, got)
			}
		}
	}
}

func inChunksOf(n int, secret, in string) string {
	r := NewRedactor(map[string]string{"S": secret})
	var out []byte
	for rest := []byte(in); len(rest) > 0; {
		k := min(n, len(rest))
		out, rest = r.Write(out, rest[:k]), rest[k:]
	}
	return string(r.Flush(out))
}

// Within a key of a known shape nothing that is not shown hides it; what stands around it stays.
func TestAKeyIsHiddenWhateverStandsUnseenInIt(t *testing.T) {
	var keys []string
	for in, want := range samples() {
		if strings.HasPrefix(want, "[redacted:") && !strings.Contains(in, "-----") {
			keys = append(keys, in)
		}
	}
	slices.Sort(keys)
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		pieces := strings.Split(key, "")
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			pieces[rapid.IntRange(0, len(pieces)-2).Draw(t, "at")] += rapid.SampledFrom(notShown).Draw(t, "not shown")
		}
		before := rapid.SampledFrom([]string{"", "log: ", "\x1b[1m", "a\u200b", "x\x1b[31m", "=\n"}).Draw(t, "before")
		after := rapid.SampledFrom([]string{"", " end", "\x1b[0m", "\x1b[0m and", ".\n", "\""}).Draw(t, "after")
		if strings.HasPrefix(after, ".") && strings.Contains(key, ".") {
			after = "\n"
		}
		in := before + strings.Join(pieces, "") + after
		want := before + samples()[key] + after
		if got := drawChunks(t, new(Redactor), in); got != want {
			t.Fatalf("%q in %q:\n have %q,\n want %q", key, in, got, want)
		}
	})
}

// What is not shown stays where it hides nothing, and does not make keys of what is none.
func TestWhatIsNotShownStays(t *testing.T) {
	for _, text := range []string{
		"\x1b[31mERROR\x1b[0m no such file", "a\u200bb\u00adc", "\x1b]0;title\aready", "\x1b", "\x1b[", "\x1b]8;;http://example.com", `\u200`, `\u`, `\x1`, "C:\\users\\new", "\\\\server\\x1b",
		"ghp_\x1b[0m and " + alphanumeric(36), "sk-\u200b" + strings.Repeat("a", 40), "\xe2\x80", "\xf3\xa0", "👩\u200d🔬 ghp_ \ufe0f",
	} {
		for n := 1; n < 5; n++ {
			if got := inChunksOf(n, "not in it at all", text); got != text {
				t.Errorf("%q, %d bytes at a time, is shown as %q", text, n, got)
			}
		}
	}
}

// However much stands unseen in what may become a secret or a key, what is held has a bound.
func TestWhatIsHeldIsBounded(t *testing.T) {
	secret := "k" + strings.Repeat("-value", 20)
	for _, piece := range []string{"\u200b", "\x1b[0m", `\u200b`, "%5C", `\`, "\x1b]8;;", "\x1b[0;", "k\u200b", "gh\u200b", "-\u200b", "sk-ant-\u200b"} {
		r, most := NewRedactor(map[string]string{"S": secret}), holdMax+pieceMax+contextMax
		chunk := []byte(strings.Repeat(piece, 4000/len(piece)))
		r.Write(nil, []byte("k-value and ghp_"))
		for range 100 {
			r.Write(nil, chunk)
			if len(r.held) > writtenMax(2*len(secret))+len(chunk) || len(r.shaper.buf) > most {
				t.Fatalf("%q: %d and %d bytes are held", piece, len(r.held), len(r.shaper.buf))
			}
		}
	}
}
