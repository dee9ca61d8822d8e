package roles

import (
	"regexp"
	"strings"
)

// shapes are the forms of well-known keys. One that appears in a text is replaced by
// [redacted:KIND], whoever it belongs to. Each begins with its prefix, and consists of the
// characters of isToken alone.
var shapes = []struct {
	prefix, kind string
	form         *regexp.Regexp
}{
	{"sk-ant-", "anthropic_key", regexp.MustCompile(`^sk-ant-[A-Za-z0-9_-]{20,}`)},
	{"sk-proj-", "openai_key", regexp.MustCompile(`^sk-proj-[A-Za-z0-9_-]{20,}`)},
	{"sk-", "api_key", regexp.MustCompile(`^sk-[A-Za-z0-9]{32,}`)},
	{"ghp_", "github_token", regexp.MustCompile(`^ghp_[A-Za-z0-9]{36,}`)},
	{"gho_", "github_token", regexp.MustCompile(`^gho_[A-Za-z0-9]{36,}`)},
	{"ghs_", "github_token", regexp.MustCompile(`^ghs_[A-Za-z0-9]{36,}`)},
	{"ghu_", "github_token", regexp.MustCompile(`^ghu_[A-Za-z0-9]{36,}`)},
	{"github_pat_", "github_token", regexp.MustCompile(`^github_pat_[A-Za-z0-9_]{60,}`)},
	{"glpat-", "gitlab_token", regexp.MustCompile(`^glpat-[A-Za-z0-9_-]{20,}`)},
	{"AKIA", "aws_key_id", regexp.MustCompile(`^AKIA[0-9A-Z]{16}`)},
	{"ASIA", "aws_key_id", regexp.MustCompile(`^ASIA[0-9A-Z]{16}`)},
	{"AIza", "google_key", regexp.MustCompile(`^AIza[A-Za-z0-9_-]{35}`)},
	{"xoxb-", "slack_token", regexp.MustCompile(`^xoxb-[A-Za-z0-9-]{20,}`)},
	{"xoxp-", "slack_token", regexp.MustCompile(`^xoxp-[A-Za-z0-9-]{20,}`)},
	{"npm_", "npm_token", regexp.MustCompile(`^npm_[A-Za-z0-9]{36}`)},
	{"hf_", "huggingface_token", regexp.MustCompile(`^hf_[A-Za-z0-9]{30,}`)},
}

// wordMax is the longest word, in bytes, in which a key is looked for.
const wordMax = 4096

// isToken reports whether a byte may be part of a key.
func isToken(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// A shaper hides what has the shape of a key, in a stream of text that may be cut anywhere.
type shaper struct {
	held string // the last word, while it may still become a key
	mid  bool   // what was given last ends within a word that is none
}

// text gives what is known of the stream after s; ended says that nothing follows.
func (h *shaper) text(s string, ended bool) string {
	s = h.held + s
	h.held = ""
	var out strings.Builder
	from := 0
	if h.mid {
		for from < len(s) && isToken(s[from]) {
			from++
		}
		out.WriteString(s[:from])
		h.mid = from == len(s)
	}
	for from < len(s) {
		start := from
		for start < len(s) && !isToken(s[start]) {
			start++
		}
		end := start
		for end < len(s) && isToken(s[end]) {
			end++
		}
		out.WriteString(s[from:start])
		word := s[start:end]
		if end == len(s) && !ended && len(word) < wordMax && mayBecomeKey(word) {
			h.held = word
			break
		}
		out.WriteString(hideKey(word))
		h.mid = word != "" && end == len(s)
		from = end
	}
	return out.String()
}

// mayBecomeKey reports whether a word that may go on begins like a key.
func mayBecomeKey(word string) bool {
	for i := range shapes {
		if p := shapes[i].prefix; strings.HasPrefix(word, p) || word != "" && strings.HasPrefix(p, word) {
			return true
		}
	}
	return false
}

// hideKey replaces a word that is a key.
func hideKey(word string) string {
	if len(word) < 20 {
		return word
	}
	for i := range shapes {
		if s := &shapes[i]; strings.HasPrefix(word, s.prefix) {
			if at := s.form.FindStringIndex(word); at != nil {
				return "[redacted:" + s.kind + "]" + word[at[1]:]
			}
		}
	}
	return word
}

// HideKeys replaces what has the shape of a well-known key, in a whole text, by
// [redacted:KIND].
func HideKeys(s string) string {
	var h shaper
	return h.text(s, true)
}
