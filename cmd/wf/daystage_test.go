package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/protocol"
	"wf/service/notify"
)

// A day is what the scripted day works with: a user with a config as docs/operate.md writes it, the servers around, and
// the daemon of the hour.
type day struct {
	*served
	t                                            *testing.T
	dir                                          string
	length                                       dayLength
	page                                         string // docs/operate.md
	env                                          []string
	began                                        time.Time
	provider                                     *provider
	receiver                                     *receiver
	tokens                                       map[string]string // by name
	missed                                       time.Time
	nightly, review, v1, v2, v3, v4, check, mend protocol.RunID
}

// say writes a line of the diary.
func (d *day) say(format string, args ...any) {
	at := time.Since(d.began)
	fmt.Fprintf(d.t.Output(), "%02d:%04.1f  %s\n", int(at.Minutes()), (at % time.Minute).Seconds(), fmt.Sprintf(format, args...))
}

// piece is the example of the page that holds a text, with others put in the place of its own.
func (d *day) piece(holds string, instead ...string) string {
	d.t.Helper()
	return pieceOf(d.t, d.page, holds, instead...)
}

// pieceOf is the example of docs/operate.md, given as page, that holds a text, with others put in the place of its own.
func pieceOf(t *testing.T, page, holds string, instead ...string) string {
	t.Helper()
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[1], holds) {
			found = append(found, m[1])
		}
	}
	if len(found) != 1 {
		t.Fatalf("docs/operate.md has %d examples with %q", len(found), holds)
	}
	for i := 0; i < len(instead); i += 2 {
		if !strings.Contains(found[0], instead[i]) {
			t.Fatalf("the example of docs/operate.md has no %q:\n%s", instead[i], found[0])
		}
		found[0] = strings.Replace(found[0], instead[i], instead[i+1], 1)
	}
	return found[0]
}

// line is the command of the page, or of a unit, that begins so.
func (d *day) line(text, begins string) string {
	d.t.Helper()
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, begins) {
			return l
		}
	}
	d.t.Fatalf("no line begins with %q", begins)
	return ""
}

// wf is a command of the operator.
func (d *day) wf(args ...string) *exec.Cmd {
	cmd := wfIn(d.dir, args...)
	cmd.Env = append(cmd.Env, d.env...)
	if d.length.program != "" {
		cmd.Path, cmd.Err = d.length.program, nil
	}
	return cmd
}

// does performs a command that ends with a status, and gives what it printed on stdout.
func (d *day) does(status int, args ...string) string {
	d.t.Helper()
	var said bytes.Buffer
	cmd := d.wf(args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if got := exitOf(d.t, err); got != status {
		d.t.Fatalf("wf %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, status, out, &said)
	}
	return string(out)
}

// asks performs a command that succeeds, with -o json, and reads what it answers.
func (d *day) asks(into any, args ...string) {
	d.t.Helper()
	out := d.does(0, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		d.t.Fatalf("wf %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// http makes a request over TCP, as another machine would behind TLS.
func (d *day) http(token, method, path, body string, headers ...string) (int, string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.said.Listen[1].URL+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+d.tokens[token])
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := d.client.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return answer.StatusCode, string(said)
}

// push sends an event of GitHub.
func (d *day) push(ref string) answered {
	d.t.Helper()
	body := fmt.Sprintf(`{"ref":%q}`, ref)
	a, err := d.deliver("deploy", body, fmt.Sprintf("X-Hub-Signature-256: sha256=%x", hmacOf(hookKey, body)), "X-GitHub-Event: push", "X-GitHub-Delivery: of-"+ref)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// measured are the metrics, read by Prometheus's own parser: name{values} → value.
func (d *day) measured() map[string]float64 {
	d.t.Helper()
	status, text := d.http("prometheus", "GET", "/metrics", "")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil || status != http.StatusOK {
		d.t.Fatalf("%d %v %s", status, err, text)
	}
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var values []string
			for _, l := range m.Label {
				values = append(values, l.GetValue())
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out[name+"{"+strings.Join(values, ",")+"}"] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				out[name+"{"+strings.Join(values, ",")+"}"] = m.Gauge.GetValue()
			}
		}
	}
	return out
}

// measures reads the metrics until they are at least what is wanted, exactly where that is 0; gauges of the store follow
// it within seconds.
func (d *day) measures(want map[string]float64) map[string]float64 {
	d.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; {
		got, wrong := d.measured(), ""
		for name, v := range want {
			if x, there := got[name]; !there || x < v || v == 0 && x > 0 {
				wrong += fmt.Sprintf("%s is %v, want %v\n", name, x, v)
			}
		}
		if wrong == "" {
			return got
		}
		if time.Now().After(end) {
			d.t.Fatalf("after a minute\n%s", wrong)
		}
		<-tick.C
	}
}

// A provider answers on Anthropic's wire, no more than perMinute requests in any minute: what is beyond it refuses with
// 429. An answer waits until there is leave for it.
type provider struct {
	at        string
	perMinute int
	now       func() time.Time
	models    *modeltest.Server
	leave     chan struct{} // one for each answer

	mu       sync.Mutex
	came     []time.Time // within the last minute
	asked    map[string]int
	answered map[string]int
	refused  int
	open     int // requests that wait for leave
}

var item = regexp.MustCompile(`file-\d{3}`)

func newProvider(t *testing.T, perMinute int) *provider {
	p := &provider{perMinute: perMinute, now: time.Now, leave: make(chan struct{}, 1<<16), asked: map[string]int{}, answered: map[string]int{}}
	p.models = modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		return modeltest.Text(item.FindString(string(r.Body)) + " is fine.")
	})
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	p.at = server.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client was killed
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	of := item.FindString(string(body))
	if !p.takes(of) {
		http.Error(w, `{"type":"error","error":{"type":"rate_limit_error","message":"too many requests"}}`, http.StatusTooManyRequests)
		return
	}
	select {
	case <-p.leave:
		p.models.ServeHTTP(w, r)
	case <-r.Context().Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	if r.Context().Err() == nil {
		p.answered[of]++
	}
}

// takes counts a request, and reports whether it is within the limit.
func (p *provider) takes(of string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for len(p.came) > 0 && now.Sub(p.came[0]) >= time.Minute {
		p.came = p.came[1:]
	}
	if len(p.came) >= p.perMinute {
		p.refused++
		return false
	}
	p.came = append(p.came, now)
	p.asked[of]++
	p.open++
	return true
}

// allow gives leave for so many answers.
func (p *provider) allow(n int) {
	for range n {
		p.leave <- struct{}{}
	}
}

// counted are the requests that came, those that were answered and refused, and those that wait for leave.
func (p *provider) counted() (asked, answered, refused, open int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.asked {
		asked += n
	}
	for _, n := range p.answered {
		answered += n
	}
	return asked, answered, p.refused, p.open
}

// The provider of the day refuses what is beyond its limit in any minute.
func TestTheProviderOfTheDayHoldsItsLimit(t *testing.T) {
	t.Parallel()
	p, at := newProvider(t, 60), time.Unix(1e9, 0)
	p.now = func() time.Time { return at }
	for n := range 60 {
		at = at.Add(time.Millisecond)
		if !p.takes("x") {
			t.Fatalf("request %d is refused", n+1)
		}
	}
	at = at.Add(time.Minute - 60*time.Millisecond)
	if p.takes("x") {
		t.Error("the 61st in a minute is let in")
	}
	at = at.Add(time.Millisecond)
	if !p.takes("x") || p.takes("x") {
		t.Error("a minute after the first one has room for one more")
	}
	if asked, _, refused, _ := p.counted(); asked != 61 || refused != 2 {
		t.Errorf("%d asked, %d refused", asked, refused)
	}
}

// A receiver takes notifications whose signatures are those of Standard Webhooks.
type receiver struct {
	at      string
	mu      sync.Mutex
	heard   []heard
	changed chan struct{}
}

// heard is a notification with what a run that it starts says of its cause.
type heard struct {
	notify.Message
	cause string
}

func newReceiver(t *testing.T) *receiver {
	k := &receiver{changed: make(chan struct{}, 1)}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(notifySecret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		m := heard{cause: r.Header.Get(protocol.CausedByHeader)}
		if err == nil {
			err = json.Unmarshal(body, &m.Message)
		}
		id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		want := "v1," + base64.StdEncoding.EncodeToString(hmacOf(string(key), id+"."+at+"."+string(body)))
		if err != nil || m.ID != id || r.Header.Get("webhook-signature") != want {
			t.Errorf("not a notification that is signed: %v %v %s", err, r.Header, body)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		k.mu.Lock()
		k.heard = append(k.heard, m)
		k.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
		select {
		case k.changed <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(server.Close)
	k.at = server.URL
	return k
}

// all are the notifications that came.
func (k *receiver) all() []heard {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.heard)
}

// notified waits for a notification of a run.
func (d *day) notified(run protocol.RunID, on protocol.Moment) heard {
	d.t.Helper()
	return d.hears(fmt.Sprintf("%s of run %s", on, run), func(m heard) bool { return m.Run == run && m.On == on })
}

// hears waits for a notification.
func (d *day) hears(what string, is func(heard) bool) heard {
	d.t.Helper()
	late := time.After(time.Minute)
	for {
		all := d.receiver.all()
		if i := slices.IndexFunc(all, is); i >= 0 {
			return all[i]
		}
		select {
		case <-d.receiver.changed:
		case <-late:
			d.t.Fatalf("there is no notification %s", what)
		}
	}
}

// start starts the daemon as its unit does.
func (d *day) start() {
	d.t.Helper()
	unit, err := os.ReadFile("../../release/wf-server.service")
	if err != nil {
		d.t.Fatal(err)
	}
	args := strings.NewReplacer("/etc/wf/", filepath.Join(d.dir, "etc")+"/", "/var/lib/wf/work", filepath.Join(d.dir, "work"), "127.0.0.1:8765", "127.0.0.1:0").
		Replace(strings.TrimPrefix(d.line(string(unit), "ExecStart="), "ExecStart=/usr/bin/wf "))
	d.served = servedBy(d.t, d.dir, d.wf(append(strings.Fields(args), "-o", "json")...))
	owner, err := os.ReadFile(d.said.TokenFile)
	if err != nil {
		d.t.Fatal(err)
	}
	d.tokens["owner"] = strings.Fields(string(owner))[0]
}

// grant adds a token to the file of the server, as the page does for Prometheus.
func (d *day) grant(name, scope string) {
	d.t.Helper()
	line := strings.NewReplacer("metrics", scope, "prometheus", name).Replace(d.line(d.page, `printf '%s metrics  # prometheus\n'`))
	cmd := exec.Command("sh", "-c", strings.Replace(line, "TOKENFILE", `"$TOKENFILE"`, 1))
	cmd.Env = append(os.Environ(), "TOKENFILE="+d.said.TokenFile)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v: %s", line, err, out)
	}
	text, err := os.ReadFile(d.said.TokenFile)
	if err != nil {
		d.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	d.tokens[name] = strings.Fields(lines[len(lines)-1])[0]
}

// steps counts the visits of a role that have ended well.
func steps(v *api.Run, role string) (n int) {
	for _, s := range v.Steps {
		if s.Role == role && s.Status == string(protocol.StepOK) {
			n++
		}
	}
	return n
}
