package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"wf/daemon"
)

const (
	rulesFile     = "../docs/operate/wf.rules.yaml"
	dashboardFile = "../docs/operate/wf.dashboard.json"
)

// served are the names of the metrics of wf serve and wf hub, those of histograms with their suffixes.
func served(t *testing.T) (all map[string]bool) {
	t.Helper()
	d := unstarted(t, t.TempDir())
	daemon.StartUncounted(d)
	h := emptyHub(t)
	all = map[string]bool{}
	for _, name := range append(d.Metrics.Names(), h.Metrics.Names()...) {
		all[name] = true
		if strings.HasSuffix(name, "_seconds") { // a histogram, or a gauge that nothing asks for a bucket
			all[name+"_bucket"], all[name+"_sum"], all[name+"_count"] = true, true, true
		}
	}
	return all
}

// emptyHub is a hub without workers.
func emptyHub(t *testing.T) *daemon.Hub {
	t.Helper()
	h, err := daemon.OpenHub(t.Context(), daemon.HubOptions{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		ListenOptions: daemon.ListenOptions{Addresses: []string{"127.0.0.1:0"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// board is what a test reads of the dashboard.
type board struct {
	Panels []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr string }
	}
}

func dashboard(t *testing.T) (b board) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	matchers = regexp.MustCompile(`\{[^}]*\}`)
	window   = regexp.MustCompile(`\[[^\]]*\]`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(?`)
	matched  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
)

// used are the metrics and the labels of an expression of PromQL.
func used(expr string) (names, labels []string) {
	expr = quoted.ReplaceAllString(expr, "")
	for _, m := range matchers.FindAllString(expr, -1) {
		for _, l := range matched.FindAllStringSubmatch(m, -1) {
			labels = append(labels, l[1])
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			labels = append(labels, strings.TrimSpace(l))
		}
	}
	expr = grouping.ReplaceAllString(window.ReplaceAllString(matchers.ReplaceAllString(expr, ""), ""), "")
	expr = regexp.MustCompile(`\b[0-9.]+(?:e[0-9]+)?\b`).ReplaceAllString(expr, "")
	for _, w := range word.FindAllString(expr, -1) {
		name := strings.TrimSpace(w)
		if strings.HasSuffix(name, "(") || slices.Contains([]string{"and", "or", "unless", "sum", "min", "max"}, name) {
			continue // a function, or an operator
		}
		names = append(names, name)
	}
	return names, labels
}

func TestTheMetricsOfAnExpressionAreFound(t *testing.T) {
	for expr, want := range map[string]string{
		`sum by (job, class) (rate(wf_a_total{x=~"b|c",class!="d"}[5m])) > 0.05`:                                 "[wf_a_total] [x class job class]",
		`histogram_quantile(0.95, sum by (le) (rate(wf_a_seconds_bucket{job=~"$job"}[$__rate_interval]))) > 1e9`: "[wf_a_seconds_bucket] [job le]",
		`wf_a < 2e9 or predict_linear(wf_b[6h], 86400) < 0`:                                                      "[wf_a wf_b] []",
		`up{job=~"wf|wf_c"} == 0 and on (job) wf_d`:                                                              "[up wf_d] [job job]",
	} {
		names, labels := used(expr)
		if got := fmt.Sprint(names, " ", labels); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

// What the dashboard and the alerts ask for is served, by the name and the labels that it has; and all that is
// served is described.
func TestTheDashboardAndTheAlertsUseWhatIsServed(t *testing.T) {
	exprs := map[string][]string{}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile(rulesFile)
	if err == nil {
		err = yaml.Load(text, &rules, yaml.WithKnownFields())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if exprs["alert "+r.Alert] != nil || r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("the alert %s is there twice, or does not say what is wrong, what to do and how bad it is", r.Alert)
			}
			exprs["alert "+r.Alert] = []string{r.Expr}
		}
	}
	ids := map[int]bool{}
	for _, p := range dashboard(t).Panels {
		if ids[p.ID] || p.Type != "row" && len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("the panel %d, %s, is there twice, shows nothing, or is too wide", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, x := range p.Targets {
			exprs["panel "+p.Title] = append(exprs["panel "+p.Title], x.Expr)
		}
	}
	if len(exprs) < 50 {
		t.Fatalf("only %d alerts and panels are found", len(exprs))
	}
	all := served(t)
	for where, list := range exprs {
		for _, expr := range list {
			names, labels := used(expr)
			if len(names) == 0 {
				t.Errorf("%s asks for nothing: %s", where, expr)
			}
			for _, name := range names {
				if !all[name] && name != "up" {
					t.Errorf("%s asks for %s, which is not served", where, name)
				}
			}
			for _, label := range labels {
				if !slices.Contains([]string{"job", "instance", "le", "workflow", "status", "model", "class"}, label) {
					t.Errorf("%s has the label %s", where, label)
				}
			}
		}
	}
	page, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range maps.Keys(all) {
		suffix := strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count")
		if strings.HasPrefix(name, "wf_") && !suffix && !strings.Contains(string(page), "`"+name) {
			t.Errorf("docs/operate.md does not describe %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`(wf_[a-z_]+)").FindAllStringSubmatch(string(page), -1) {
		if !all[m[1]] {
			t.Errorf("docs/operate.md describes %s, which is not served", m[1])
		}
	}
}

// promtool is Prometheus's own check of what it reads, where it is installed.
func promtool(t *testing.T, in io.Reader, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", args[:2], err, out)
	}
}

// Prometheus itself takes the alerts.
func TestPrometheusTakesTheAlerts(t *testing.T) {
	promtool(t, nil, "check", "rules", rulesFile)
}

// Prometheus takes what the panels of the dashboard ask for, as the rules that they would be.
func TestPrometheusTakesThePanels(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", "wf", "$instance", ".*")
	for _, p := range dashboard(t).Panels {
		for _, x := range p.Targets {
			rules = append(rules, rule{fmt.Sprint("panel:", len(rules)), variables.Replace(x.Expr)})
		}
	}
	b, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, nil, "check", "rules", path)
}

// Prometheus takes what wf serve and wf hub answer, and finds nothing in it that is not as is usual.
func TestPrometheusTakesTheMetrics(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, measured)
	d := unstarted(t, dir)
	daemon.StartUncounted(d)
	for _, inputs := range []string{`{}`, `{"ok":true}`, `{"ok":false}`} {
		begun(t, d, "ends", inputs)
	}
	begun(t, d, "parent", `{}`)
	if err := daemon.Recount(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	promtool(t, scrape(t, d.Handler()), "check", "metrics")
	promtool(t, scrape(t, daemon.HandlerOf(emptyHub(t))), "check", "metrics")
}
