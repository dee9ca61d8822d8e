package schema

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"wf/protocol/lazy"
)

// formats tell why a text is not of a format, "" where it is. Formats that are not here are
// remarks.
var formats = sync.OnceValue(func() map[string]func(string) string {
	return map[string]func(string) string{
		"date":                  date,
		"time":                  clock,
		"date-time":             dateTime,
		"duration":              span,
		"period":                period,
		"uuid":                  like("123e4567-e89b-12d3-a456-426614174000", uuid),
		"ipv4":                  ipv4,
		"ipv6":                  ipv6,
		"hostname":              hostname,
		"email":                 email,
		"uri":                   uri,
		"iri":                   uri,
		"uri-reference":         uriReference,
		"iri-reference":         uriReference,
		"uri-template":          uriTemplate,
		"json-pointer":          like("/name/0, with ~0 for ~ and ~1 for /", jsonPointer),
		"relative-json-pointer": like("0/name or 1#", relativePointer),
		"regex":                 regex,
		"semver":                like("1.2.3-rc.1+build", semver),
	}
})

// What formats look like that an expression says in full.
var (
	clockForm       = lazy.Regexp(`^(\d\d):(\d\d):(\d\d)(\.\d+)?(?:[zZ]|([-+])(\d\d):(\d\d))$`)
	duration        = lazy.Regexp(`^P(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?)$`)
	uuid            = lazy.Regexp(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	label           = lazy.Regexp(`^[0-9A-Za-z]([-0-9A-Za-z]{0,61}[0-9A-Za-z])?$`)
	mailbox         = lazy.Regexp("^(\"[^\"\\\\]*\"|[-0-9A-Za-z!#$%&'*+/=?^_`{|}~]+(\\.[-0-9A-Za-z!#$%&'*+/=?^_`{|}~]+)*)$")
	braces          = lazy.Regexp(`^([^{}]|\{[^{}]*\})*$`) // in pairs, none within another
	jsonPointer     = lazy.Regexp(`^(/([^~/]|~[01])*)*$`)
	relativePointer = lazy.Regexp(`^(0|[1-9]\d*)(#|(/([^~/]|~[01])*)*)$`)
	semver          = lazy.Regexp(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-(0|[1-9]\d*|\d*[-A-Za-z][-0-9A-Za-z]*)(\.(0|[1-9]\d*|\d*[-A-Za-z][-0-9A-Za-z]*))*)?(\+[-0-9A-Za-z]+(\.[-0-9A-Za-z]+)*)?$`)
)

// must is a format for which the reason is the same, whatever is wrong with a text.
func must(reason string, fits func(string) bool) func(string) string {
	return func(s string) string {
		if !fits(s) {
			return reason
		}
		return ""
	}
}

// like is a format that an expression says; the example tells what was expected.
func like(example string, form func() *regexp.Regexp) func(string) string {
	return must("it must be like "+example, func(s string) bool { return form().MatchString(s) })
}

var (
	// span may lack each of its parts, but neither all of them nor all that follow its T.
	span = must("it must be like P3Y6M4DT12H30M5S or P4W", func(s string) bool {
		return duration().MatchString(s) && s != "P" && !strings.HasSuffix(s, "T")
	})
	date = must("it must be a day like 2006-01-31", func(s string) bool {
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	})
	ipv4 = must("it must be like 192.0.2.1", func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is4()
	})
	ipv6 = must("it must be like 2001:db8::1", func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is6() && a.Zone() == ""
	})
)

func clock(s string) string {
	const like = "it must be like 15:04:05Z or 15:04:05.5+01:00"
	m := clockForm().FindStringSubmatch(s)
	if m == nil {
		return like
	}
	two := func(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }
	h, min, sec := two(m[1]), two(m[2]), two(m[3])
	if h > 23 || min > 59 || sec > 60 {
		return like
	}
	at := h*60 + min // in UTC, for leap seconds
	if m[5] != "" {
		if two(m[6]) > 23 || two(m[7]) > 59 {
			return like
		}
		if m[5] == "+" {
			at -= two(m[6])*60 + two(m[7])
		} else {
			at += two(m[6])*60 + two(m[7])
		}
	}
	if sec == 60 && (at+24*60)%(24*60) != 24*60-1 {
		return "a leap second is at 23:59:60Z"
	}
	return ""
}

func dateTime(s string) string {
	if len(s) < 11 || s[10] != 'T' && s[10] != 't' {
		return "it must be like 2006-01-31T15:04:05Z"
	}
	if reason := date(s[:10]); reason != "" {
		return reason
	}
	return clock(s[11:])
}

func period(s string) string {
	start, end, ok := strings.Cut(s, "/")
	if !ok {
		return "it must be a start and an end with a slash between them"
	}
	check := func(s string) string {
		if strings.HasPrefix(s, "P") {
			return span(s)
		}
		return dateTime(s)
	}
	if strings.HasPrefix(start, "P") && strings.HasPrefix(end, "P") {
		return "one of its ends must be a time"
	}
	if reason := check(start); reason != "" {
		return reason
	}
	return check(end)
}

func hostname(s string) string {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return "it is longer than 253 characters"
	}
	for part := range strings.SplitSeq(s, ".") {
		if !label().MatchString(part) {
			return fmt.Sprintf("%s is no part of a host name", quote(part))
		}
	}
	return ""
}

func email(s string) string {
	at := strings.LastIndexByte(s, '@')
	switch {
	case at < 0:
		return "it has no @"
	case len(s) > 254 || at > 64:
		return "it is too long"
	case !mailbox().MatchString(s[:at]):
		return fmt.Sprintf("%s is no name of a mailbox", quote(s[:at]))
	}
	domain := s[at+1:]
	if inner, ok := strings.CutPrefix(domain, "["); ok && strings.HasSuffix(inner, "]") {
		inner = strings.TrimSuffix(inner, "]")
		if v6, ok := strings.CutPrefix(inner, "IPv6:"); ok {
			return ipv6(v6)
		}
		return ipv4(inner)
	}
	return hostname(domain)
}

func parse(s string) (*url.URL, string) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, err.Error()
	}
	if host := u.Hostname(); strings.Contains(host, ":") && (!strings.Contains(u.Host, "[") || ipv6(host) != "") {
		return nil, "its address must be like [2001:db8::1]"
	}
	return u, ""
}

func uri(s string) string {
	u, reason := parse(s)
	if reason == "" && !u.IsAbs() {
		return "it must begin with a scheme like https:"
	}
	return reason
}

func uriReference(s string) string {
	if strings.Contains(s, `\`) {
		return `it contains \`
	}
	_, reason := parse(s)
	return reason
}

func uriTemplate(s string) string {
	if _, reason := parse(s); reason != "" {
		return reason
	}
	if !braces().MatchString(s) {
		return "its braces are not in pairs"
	}
	return ""
}

func regex(s string) string {
	if _, err := regexp.Compile(s); err != nil {
		return err.Error()
	}
	return ""
}
