package render

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"wf/api"
	"wf/cmd/internal/screentest"
	"wf/protocol"
)

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
var renderers = map[string]func(*Screen, Backdrop) Reporter{
	"lines": func(w *Screen, b Backdrop) Reporter {
		return &plainLines{w: w, Backdrop: b, verbose: true}
	},
	"folded": func(w *Screen, b Backdrop) Reporter {
		b.Fold = &Folder{}
		return &plainLines{w: w, Backdrop: b}
	},
	"groups":  func(w *Screen, b Backdrop) Reporter { return &groups{w: w, Backdrop: b, lines: map[string][]string{}} },
	"stream":  func(w *Screen, b Backdrop) Reporter { return &transcript{w: w, Backdrop: b} },
	"as JSON": func(w *Screen, _ Backdrop) Reporter { return &jsonLines{p: &Printer{Out: w, Err: w, Format: "jsonl"}} },
}

// F-39: whatever text a string of an event has, nothing of it acts on the terminal that shows it.
func TestNoStringOfAnEventActsOnATerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func() string {
			if rapid.IntRange(0, 3).Draw(t, "ordinary") == 0 {
				return rapid.String().Draw(t, "text")
			}
			return "a" + rapid.SampledFrom(screentest.Hostile).Draw(t, "hostile") + "b"
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
				r := open(&Screen{Writer: &b, Paint: Paint{color}}, Backdrop{Context: t.Context(), Blocks: records{}})
				for _, n := range notices {
					r.Notice(n)
				}
				r.Close()
				if what := screentest.Acts(b.String(), color); what != "" {
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
		for i := range len(screentest.Hostile) {
			for _, spec := range protocol.Events() {
				into, data := spec.New()
				if into == nil {
					continue
				}
				filled(reflect.ValueOf(into).Elem(), func() string { i++; return "a" + screentest.Hostile[i%len(screentest.Hostile)] + "b" })
				var b bytes.Buffer
				l := newLive(&Screen{Writer: &b, TTY: true, Width: 200}, Backdrop{Context: t.Context(), Blocks: records{}})
				l.Notice(api.Update{Step: screentest.Hostile[i%len(screentest.Hostile)], Data: protocol.StepStarted{Role: screentest.Hostile[i%len(screentest.Hostile)], Visit: 1, Attempt: 1}})
				l.Notice(api.Update{Step: screentest.Hostile[i%len(screentest.Hostile)], Data: protocol.Delta{Kind: "text", Text: "x" + screentest.Hostile[(i+1)%len(screentest.Hostile)]}})
				l.Notice(api.Update{Step: screentest.Hostile[i%len(screentest.Hostile)], Data: data(), Entry: &protocol.Entry{}})
				l.Close()
				if what := screentest.Acts(own.ReplaceAllString(b.String(), ""), false); what != "" {
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
		s := &Screen{Writer: &b, Paint: Paint{color}}
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
