package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// hostile are texts that act on a terminal, or on the eyes of who reads it.
var hostile = []string{
	"\x1b]52;c;cHduZWQ=\x07", "\x1b]0;owned\x1b\\", "\x1b[2J\x1b[H", "\x1b[8mhidden", "\x1bP+q\x1b\\", "\x1bc", "\u009b2J", "\u009d0;owned\u009c", "\x9b2J", "\x90",
	"\u202egnp.exe", "\u2066\u2069", "\u200b\u2063", "\ufeff", "\U000e0041", "\b\b\b", "\r\x00", "\x7f", "two\nlines\r\n", "\x1b[31", "caf\xc3",
}

// acts names the first thing in what was printed that acts on a terminal; the colours of wf do not.
func acts(printed string, color bool) string {
	if color {
		printed = regexp.MustCompile(`\x1b\[(0|1|2|4|3\d|1;3\d)m`).ReplaceAllString(printed, "")
	}
	if !utf8.ValidString(printed) {
		return fmt.Sprintf("invalid UTF-8 in %q", printed)
	}
	for i, r := range printed {
		if plain.Hidden(r) {
			return fmt.Sprintf("%U in …%q", r, printed[max(0, i-60):i+utf8.RuneLen(r)])
		}
	}
	return ""
}

// filled puts texts into every string of a value, however deep.
func filled(v reflect.Value, text func() string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), text)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[protocol.JSON]() || v.Type() == reflect.TypeFor[json.RawMessage]() {
			b, _ := json.Marshal(map[string]string{text(): text()})
			v.SetBytes(b)
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text()))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			filled(v.Index(i), text)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		filled(key, text)
		filled(value, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[protocol.Link]() {
				filled(v.Field(i), text)
			}
		}
	}
}

// renderers show a run while it goes on, each in its way.
var renderers = map[string]func(*screen, backdrop) reporter{
	"lines": func(w *screen, b backdrop) reporter {
		return &plainLines{w: w, backdrop: b, verbose: true, fold: (&app{every: true}).newFolder()}
	},
	"folded": func(w *screen, b backdrop) reporter {
		return &plainLines{w: w, backdrop: b, fold: (&app{}).newFolder()}
	},
	"groups":  func(w *screen, b backdrop) reporter { return &groups{w: w, backdrop: b, lines: map[string][]string{}} },
	"spoken":  func(w *screen, b backdrop) reporter { return &spokenScreen{w: w, backdrop: b, paint: paint{w.color}} },
	"as JSON": func(w *screen, _ backdrop) reporter { return &jsonLines{a: &app{out: w, err: w, format: "jsonl"}} },
}

// F-39: whatever stands in whichever string of an event, nothing of it acts on the terminal that shows it.
func TestNoStringOfAnEventActsOnATerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func() string {
			if rapid.IntRange(0, 3).Draw(t, "ordinary") == 0 {
				return rapid.String().Draw(t, "text")
			}
			return "a" + rapid.SampledFrom(hostile).Draw(t, "hostile") + "b"
		}
		color := rapid.Bool().Draw(t, "color")
		for _, spec := range protocol.Events() {
			into, data := spec.New()
			if into == nil {
				continue
			}
			filled(reflect.ValueOf(into).Elem(), text)
			step := text()
			notices := []api.Update{
				{Step: step, Data: protocol.Delta{Kind: rapid.SampledFrom([]string{"text", "thinking", "stdout"}).Draw(t, "kind"), Text: text()}},
				{Step: step, Data: data(), Entry: &protocol.Entry{Event: protocol.Event{Seq: 2, Type: spec.Type, Step: &step}}},
			}
			for name, open := range renderers {
				var b bytes.Buffer
				r := open(&screen{Writer: &b, color: color}, backdrop{ctx: t.Context(), blocks: records{}, steers: map[string]bool{}})
				for _, n := range notices {
					r.notice(n)
				}
				r.close()
				if what := acts(b.String(), color); what != "" {
					t.Fatalf("%s of %s: %s", name, spec.Type, what)
				}
			}
		}
	})
}

// The same for the screen that keeps the open steps at its bottom, which moves the cursor itself.
func TestNoStringOfAnEventActsOnTheLiveScreen(t *testing.T) {
	own := regexp.MustCompile(`\x1b\[\d+A\r\x1b\[J`)
	synctest.Test(t, func(t *testing.T) {
		for i := range len(hostile) {
			for _, spec := range protocol.Events() {
				into, data := spec.New()
				if into == nil {
					continue
				}
				filled(reflect.ValueOf(into).Elem(), func() string { i++; return "a" + hostile[i%len(hostile)] + "b" })
				var b bytes.Buffer
				l := newLive(&screen{Writer: &b, tty: true, width: 200}, backdrop{ctx: t.Context(), blocks: records{}, steers: map[string]bool{}})
				l.notice(api.Update{Step: hostile[i%len(hostile)], Data: protocol.StepStarted{Role: hostile[i%len(hostile)], Visit: 1, Attempt: 1}})
				l.notice(api.Update{Step: hostile[i%len(hostile)], Data: protocol.Delta{Kind: "text", Text: "x" + hostile[(i+1)%len(hostile)]}})
				l.notice(api.Update{Step: hostile[i%len(hostile)], Data: data(), Entry: &protocol.Entry{}})
				l.close()
				if what := acts(own.ReplaceAllString(b.String(), ""), false); what != "" {
					t.Errorf("%s: %s", spec.Type, what)
				}
			}
		}
	})
}

// A letter that two writes share is shown whole, and colours only where the screen has them.
func TestAScreenShowsTextAsItIs(t *testing.T) {
	for color, want := range map[bool]string{true: "ä\x1b[31mred\x1b[0m漢\\u001b[5m", false: `ä\u001b[31mred\u001b[0m漢\u001b[5m`} {
		var b bytes.Buffer
		s := &screen{Writer: &b, color: color}
		for _, part := range []string{"\xc3", "\xa4\x1b[31mred\x1b[0m\xe6", "\xbc", "\xa2\x1b[5m"} {
			if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if b.String() != want {
			t.Errorf("colour %t: %q, want %q", color, b.String(), want)
		}
	}
}

// What every command prints of a run whose model and commands are hostile, in every form.
func TestNoCommandPrintsWhatActsOnATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := strings.Join(hostile, "|")
	quoted := func(s string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(s, "")) }
	text, name := quoted("---\nstatus: done\n---\n"+all), quoted("tool\x1b]0;owned\x07\u009b2J\u202e\u200b")
	write(t, dir, "said.bin", all)
	write(t, dir, "replies.yaml", fmt.Sprintf("\"a#1\":\n  - {thinking: %s, tool: %s, args: {x: %s}}\n  - {text: %s}\n", text, name, text, text))
	write(t, dir, "hostile.yaml", `wf: 1
name: hostile
inputs: {what: {type: string, required: true}}
roles:
  a: {prompt: "You are a. ${{ inputs.what }}", model: script/replies.yaml, tools: [read_file]}
  b: {run: "cat said.bin; cat said.bin >&2; exit 3", timeout: 1m}
edges:
  - {from: START, to: a, prompt: "${{ inputs.what }}"}
  - {from: a, to: b, prompt: "${{ inputs.what }}"}
  - {from: b, to: END}
outputs: {what: "${{ inputs.what }}"}
`)
	write(t, dir, "input.txt", strings.ToValidUTF8(strings.ReplaceAll(all, "\x00", ""), ""))
	title := strings.ToValidUTF8(strings.ReplaceAll(all, "\x00", ""), "")
	commands := [][]string{
		{"run", "hostile.yaml", "-i", "what=@input.txt", "--title", title, "--tag", title, "-v"}, {"run", "hostile.yaml", "-i", "what=@input.txt", "--title", title, "-o", "jsonl"},
		{"ls", "--all"}, {"show", "-1"}, {"show", "-1:a#1"}, {"show", "-1:b#1"}, {"log", "-1"}, {"log", "-1:b#1"}, {"log", "-1:a#1"},
		{"watch", "-1"}, {"replay", "-1"}, {"replay", "-1", "--check"}, {"diff", "-2", "-1"}, {"explain", "-1:b#1"}, {"cost", "-1"},
		{"messages", "-1:a#1"}, {"cache", "-1"}, {"graph", "hostile.yaml"}, {"verify", "-1"}, {"validate", "hostile.yaml"},
	}
	colours := map[bool]string{true: "always", false: "never"}
	for _, args := range commands {
		for color, when := range colours {
			for _, form := range []string{"", "json"} {
				with := append([]string{"--color", when}, args...)
				if form != "" {
					if args[0] == "graph" || args[len(args)-1] == "jsonl" {
						continue
					}
					with = append(with, "-o", form)
				}
				cmd := wfIn(dir, with...)
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil {
					t.Fatal(err)
				}
				if len(out) == 0 || cmd.ProcessState.ExitCode() == 2 {
					t.Errorf("wf %q: %v\n%s", args, err, out)
				}
				if what := acts(string(out), color); what != "" {
					t.Errorf("wf %.60q %s %s: %s", args, when, form, what)
				}
			}
		}
	}
}

// All that wf prints goes through a screen: nothing else reaches for the streams of the process, and the
// bytes of blocks and archives alone go past it.
func TestOnlyScreensReachTheTerminal(t *testing.T) {
	past := regexp.MustCompile(`os\.Std(out|err)\b|\b(out|err|w)\.Writer\b|fmt\.Print(f|ln)?\(`)
	allowed := map[string]int{"main.go": 1, "block.go": 1, "cas.go": 1, "export.go": 1}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for l := range strings.Lines(string(source)) {
			if past.MatchString(l) {
				n++
			}
		}
		if n != allowed[file] {
			t.Errorf("%s reaches past the screen in %d lines, want %d", file, n, allowed[file])
		}
	}
}
