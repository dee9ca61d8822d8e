package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/protocol/lazy"
)

// otherPlaces are those at which the store of a house is reached, beside its directory. Each starts what serves it and
// gives the flags with which commands go there.
var otherPlaces = []struct {
	name  string
	quick bool // also with -short
	start func(*house, *testing.T) []string
}{
	{"unix", true, (*house).atSocket},
	{"serve", false, (*house).atPort},
	{"hub", false, (*house).atHub},
	{"database", false, (*house).atDatabase},
}

// everywhere performs the commands at every place, and holds what they print against the goldens of the directory.
func (h *house) everywhere(t *testing.T) {
	compared := 0
	for _, place := range otherPlaces {
		if testing.Short() && !place.quick {
			continue
		}
		t.Run(place.name, func(t *testing.T) {
			h.at(t, place.name, place.start)
			compared++
		})
	}
	if t.Failed() || compared < len(otherPlaces) {
		return
	}
	for i, x := range exceptions {
		if !excepting[i] {
			t.Errorf("nothing needs the exception that %s", x.why)
		}
	}
}

// at performs the commands at one place, on a fresh copy of the store.
func (h *house) at(t *testing.T, place string, start func(*house, *testing.T) []string) {
	h.open(t)
	here := h.fork()
	flags := start(here, t)
	for _, b := range books(t, "read", "move") {
		if place == "database" { // its runs are all of the user, and RUN_FAR___ came from elsewhere to the directory
			b.pages = slices.DeleteFunc(b.pages, func(p page) bool { return strings.Contains(p.command, "RUN_FAR___") })
		}
		led := b.performed(t, here, flags)
		for i, p := range b.pages {
			if d := difference(p.printed, led.pages[i].printed, place); d != "" {
				t.Errorf("%s: %s\nleads elsewhere at %s than at the directory of the store: the first line that differs, − at the directory, + there:\n%s", b.name, p.command, place, d)
			}
		}
	}
}

// exceptions are the differences that are meant, with why. Both texts are compared with them replaced.
var exceptions = []struct {
	what func() *regexp.Regexp
	with string
	why  string
	at   string // the place alone that needs it; "" is all
}{
	{lazy.Regexp(`/TOP/house/work/\.wf\b`), "PLACE", "the place has the name under which it was reached", ""},
	{lazy.Regexp(`(?m)^store PLACE \((?:from )?--store\)\n`), "", "which store was found, and why, is said where one is looked for", ""},
	{lazy.Regexp(`(?m)^(● \S+  run \S+  def \w+  \(.*?\))  at PLACE  \(Ctrl-C leaves, the run goes on\)$`), "$1",
		"Ctrl-C suspends a run here, and leaves one that is elsewhere", ""},
	{lazy.Regexp(`("request_id": ?)"[A-Z2-7]{26}"`), `$1""`, "what is sent has an id, so that it begins one run however often it is sent", ""},
	{lazy.Regexp(`,\n? *"agent": ?"[^"]*"`), "", "a hub says which worker has a run", ""},
	{lazy.Regexp(`(?m)^  model .* \(\w+\)\n`), "", "which model a role gets, and where that is said, is told where it is looked up", ""},
	{lazy.Regexp(`"source": ?"(?:cli|http)"`), `"source":""`, "the record of an answer says by which way it came", ""},
	{lazy.Regexp(`(?m)(: |"checked": ?\{)[^{}]*?(, all as their hashes say$|"moves": ?\d+\n? *\}),?`), "$1$2", "from a server the archive of a run is proved, with its names and its sub-workflows", ""},
	{lazy.Regexp(`"not_proven": ?\[[^\]]*\]|(?m)^  not proven: .*\n|(RUN_\w+)/\d+(/head: rolled_back)`), "$1$2", "an archive has no reflog and no other runs, and no event names its run", ""},
	{lazy.Regexp(`(?m) +from elsewhere: wf store adopt RUN_FAR___$| +asks: "And now\?"$`), "  FAR", "all runs of a database are the user's own", "database"},
	{lazy.Regexp(`(?m)^ +origin +from elsewhere: .*\n|^ *"foreign": true,\n|"foreign":true,`), "", "all runs of a database are the user's own", "database"},
	{lazy.Regexp(`wf store adopt RUN_FAR___ · wf log RUN_FAR___|wf answer 'RUN_FAR___:gate#1' "…"`), "FAR", "all runs of a database are the user's own", "database"},
	{lazy.Regexp(`"machine":"[0-9a-f]{12}",`), "", "in a database a run says on which machine its files are", "database"},
	{lazy.Regexp(`(?m)^( *due +firing +run) +status$`), "$1 status", "ids are longer in a database", "database"},
	{lazy.Regexp(`no worker that is connected has the block (\w+).*`), "block $1: no such block", "a hub asks all its workers for a block", ""},
}

// late is what a user reads of a server that is slow to begin a run, which a loaded machine makes of any.
var late = lazy.Regexp(`(?m)^the run waits for a worker .*\n`)

// excepting are the exceptions that were needed.
var excepting = map[int]bool{}

func excepted(p printed, place string) string {
	p.stderr = late().ReplaceAllString(p.stderr, "")
	for i, x := range exceptions {
		if x.at != "" && x.at != place {
			continue
		}
		before := p
		p.stdout = x.what().ReplaceAllString(p.stdout, x.with)
		p.stderr = x.what().ReplaceAllString(p.stderr, x.with)
		excepting[i] = excepting[i] || p != before
	}
	return p.String()
}

// difference is the first line in which what a command printed differs, "" where none does.
func difference(want, got printed, place string) string {
	w, g := strings.Split(excepted(want, place), "\n"), strings.Split(excepted(got, place), "\n")
	for i := range max(len(w), len(g)) {
		var a, b string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			same := 0
			for same < min(len(a), len(b)) && a[same] == b[same] {
				same++
			}
			return "- " + beside(a, same) + "\n+ " + beside(b, same) + "\n"
		}
	}
	return ""
}

// beside is a line about a byte of it.
func beside(line string, at int) string {
	const before, after = 60, 100
	var s string
	if at > before {
		s = "…" + strings.ToValidUTF8(line[at-before:at], "")
	} else {
		s = line[:at]
	}
	if at+after < len(line) {
		return strings.ToValidUTF8(s+line[at:at+after], "") + "…"
	}
	return strings.ToValidUTF8(s+line[at:], "")
}

// atSocket serves the store at a unix socket.
func (h *house) atSocket(t *testing.T) []string {
	url := h.serve(t, "--listen", "unix").Listen[0].URL
	return h.behind(t, url)
}

// atPort serves the store at a port, with a token.
func (h *house) atPort(t *testing.T) []string {
	said := h.serve(t, "--listen", "127.0.0.1:0")
	return h.behind(t, said.Listen[0].URL, "--hub-token-file", said.TokenFile)
}

// startHub starts a hub, which stays empty while the other places are compared: for some time after its start
// a hub tells of a run that it does not know that its daemon may be on the way.
func (h *house) startHub(t *testing.T) {
	p := startProcess(t, h.top, "hub", "--listen", "127.0.0.1:0", "--data", filepath.Join(h.top, "hub"))
	if err := json.Unmarshal(p.line, &h.hub); err != nil {
		t.Fatal(err)
	}
}

// atHub serves the store through the hub.
func (h *house) atHub(t *testing.T) []string {
	url := h.hub.Listen[0].URL
	h.serve(t, "--name", "desk", "--listen", "unix", "--hub", url, "--hub-token-file", h.hub.AgentToken, "--hub-admin")
	flags := h.behind(t, url, "--hub-token-file", h.hub.TokenFile)
	h.await(t, func() bool {
		var list struct{ Items []json.RawMessage }
		ls := wfMain(slices.Concat(flags, []string{"ls", "--all", "-n", "0", "-o", "json"})...)
		return ls.exit == 0 && json.Unmarshal([]byte(ls.stdout), &list) == nil && len(list.Items) == len(h.runs)
	})
	h.await(t, func() bool {
		return !strings.Contains(wfMain(slices.Concat(flags, []string{"show", "NOTHERE"})...).stderr, "has just started")
	})
	return flags
}

// behind are the flags for a server at a URL. A command that does not heed them finds another store.
func (h *house) behind(t *testing.T, url string, flags ...string) []string {
	t.Setenv("WF_STORE", filepath.Join(h.top, "house", "empty"))
	h.mask.place = url
	return append([]string{"--hub", url}, flags...)
}

// serve starts a daemon of the store.
func (h *house) serve(t *testing.T, args ...string) (said api.Serving) {
	t.Helper()
	p := startProcess(t, h.dir, append([]string{"serve"}, args...)...)
	if err := json.Unmarshal(p.line, &said); err != nil {
		t.Fatal(err)
	}
	return said
}

// await waits until something is so.
func (h *house) await(t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

var placed = regexp.MustCompile(` --(?:hub|hub-token-file|hub-ca|store) \S+`)

// unplaced is a text without what says in its commands where they work.
func unplaced(text string) string { return placed.ReplaceAllString(text, "") }
