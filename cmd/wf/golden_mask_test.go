package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"wf/protocol"
	"wf/protocol/lazy"
)

// A mask puts names where a text has what cannot be the same twice: ids of runs, CIDs of events (they hold
// the time), times, how long something took, and the path of the store.
type mask struct {
	top         string
	place       string            // a URL that is another each time; "" is none
	names       map[string]string // by what they stand for
	heads       map[protocol.RunID]string
	definitions map[protocol.RunID]string
	seen        map[protocol.RunID]protocol.Seq
}

func newMask(top string) *mask {
	return &mask{top, "", map[string]string{}, map[protocol.RunID]string{}, map[protocol.RunID]string{}, map[protocol.RunID]protocol.Seq{}}
}

func (m *mask) fork() *mask {
	return &mask{m.top, m.place, maps.Clone(m.names), maps.Clone(m.heads), maps.Clone(m.definitions), maps.Clone(m.seen)}
}

// event names an event of a run. Those that a fork has from the run before it keep their names.
func (m *mask) event(run protocol.RunID, e protocol.Entry) {
	name := m.names[string(run)]
	if cid := e.CID.String(); m.names[cid] == "" {
		m.names[cid] = fmt.Sprintf("EVENT.%s.%d", name, e.Seq)
		m.names[e.CID.Short()] = fmt.Sprintf("#%s%03d", name[4:8], e.Seq)
	}
	m.seen[run] = max(m.seen[run], e.Seq)
}

var (
	runNames = lazy.Regexp(`\b(?:(?:HEAD|DEF)\.)?RUN_[A-Z0-9_]{6}\b`)
	chances  = lazy.Regexp(`\bbafy[a-z2-7]{50,}\b|\b(?:[0-9A-HJKMNP-TV-Z]{10}|[0-9A-HJKMNP-TV-Z]{16})\b|\b[a-z2-7]{8}\b`)
	spans    = lazy.Regexp(`\b(?:\d+m)?\d+(?:\.\d+)?(?:µs|ms|s)\b|\b\d+ seconds?\b`)
	gaps     = lazy.Regexp(`(\S)   *`)
)

// wayThere are the flags of a command that is printed, by which it works where the one does that prints it.
var wayThere = lazy.Regexp(` --store (?:/TOP/house/work/\.wf\b|'?PLACE\S*)| --hub (?:PLACE|unix:\S+)(?: --hub-token-file \S+)?(?: --hub-ca \S+)?`)

// masked are the other parts of a text that differ from time to time.
var masked = []struct {
	what func() *regexp.Regexp
	with string
}{
	{lazy.Regexp(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| UTC)?`), "TIME"},
	{lazy.Regexp(`(?m)^\{"type":"delta",.*\n`), ""},                                                                                 // live output: whether it comes before what is recorded is by chance
	{lazy.Regexp(`(?m)^(?:the run waits for a worker that has the workflow|the worker \S+ begins the run|not begun yet:).*\n`), ""}, // said after 2 s
	{lazy.Regexp(`(  )\d+[mhdwy]\b`), "${1}0s"},                                                                                     // how long ago
	{lazy.Regexp(`\bat \d\d:\d\d:\d\d\b`), "at TIME"},
	{lazy.Regexp(`("(?:ts|retry_at)":\s*)\d{16}\b`), "${1}0"},
	{lazy.Regexp(`("(?:\w+_)?(?:ms|pct|pid)":\s*)\d+(?:\.\d+)?`), "${1}0"},
	{lazy.Regexp(`("blocks":\s*\d+,\s*"bytes":\s*)\d+`), "${1}0"},               // events have times in them
	{lazy.Regexp(`("(?:traceId|spanId|parentSpanId)":")[0-9a-f]+"`), `${1}ID"`}, // made of the first event
	{lazy.Regexp(`("(?:start|end)TimeUnixNano":")\d+"`), `${1}0"`},
	{lazy.Regexp(`("doubleValue":)[\d.]+`), "${1}0"},
	{lazy.Regexp(`("moves":\s*)\d+`), "${1}0"},                                       // in the reflog: several events may be one
	{lazy.Regexp(`("roots":\s*\[\s*"[^"]*",\s*")bafy\w+`), "${1}NAMES"},              // what tells the names of the heads
	{lazy.Regexp(`("tree":\s*")bafyrei[a-z2-7]{52}"`), `${1}TREE"`},                  // of the workspace, in which files name its path
	{lazy.Regexp(`("shown":\s*")[0-9a-f]{64}"`), `${1}DIGEST"`},                      // of a call, with the path of the workspace
	{lazy.Regexp(`("file_(?:before|after)":\s*)\d+`), "${1}0"},                       // pages of the store
	{lazy.Regexp(`(the store file has )\d+( bytes, had )\d+`), "${1}0${2}0"},         // likewise
	{lazy.Regexp(`(\b(?:wrote .*:|imported) \d+ blocks, )\d+( bytes)`), "${1}0${2}"}, // likewise
}

// bigText is the answer of more than 1 MiB in the store, bigName what stands for it. It is made when it is needed:
// this program starts thousands of times, as wf.
var bigText = sync.OnceValue(func() string { return strings.Repeat("0123456789abcde ", 70_000) })

const bigName = "(70,000 times '0123456789abcde ')"

// text masks a text. Where something took a time the columns beside it are as wide as it was long: there
// the gaps between columns are two spaces.
func (m *mask) text(s string) string {
	s = strings.ReplaceAll(s, bigText(), bigName)
	if m.place != "" {
		s = strings.ReplaceAll(s, m.place, "PLACE")
	}
	s = strings.ReplaceAll(s, m.top, "/TOP")
	s = wayThere().ReplaceAllString(s, "")
	s = chances().ReplaceAllStringFunc(s, func(found string) string {
		if name := m.names[found]; name != "" {
			return name
		}
		return found
	})
	for _, x := range masked {
		s = x.what().ReplaceAllString(s, x.with)
	}
	if spans().MatchString(s) {
		s = gaps().ReplaceAllString(spans().ReplaceAllString(s, "0ms"), "$1  ")
	}
	return s
}

// longestLine is how many bytes of a line stand in a golden.
const longestLine = 2000

// shortened is a line with its digest in place of its middle, where it is very long.
func shortened(line string) string {
	if len(line) <= longestLine {
		return line
	}
	const most = 300
	head, tail := strings.ToValidUTF8(line[:most], ""), strings.ToValidUTF8(line[len(line)-most/3:], "")
	return fmt.Sprintf("%s…[%d bytes, sha256 %x]…%s", head, len(line), sha256.Sum256([]byte(line)), tail)
}
