package replay_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/hub/replay"
	"wf/protocol"
)

// textSizes are lengths around the one above which a text becomes a block of its own.
var textSizes = []int{0, 1, protocol.InlineMax - 1, protocol.InlineMax, protocol.InlineMax + 1, 200 << 10}

// Every text of every type of event comes back whole, however long it is: from the store, and in
// the JSON of the replay.
func TestEveryTextOfEveryEventIsShownWhole(t *testing.T) {
	store := openStore(t)
	j, err := store.Journal(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	var said []protocol.Data
	for _, e := range protocol.Events() {
		for _, size := range textSizes {
			into, data := e.New()
			if data == nil {
				continue // reserved
			}
			for i, text := range protocol.Texts(into) {
				*text = protocol.NewText(strings.Repeat(fmt.Sprint(i%10), size))
			}
			said = append(said, data())
			if _, err := j.Append(t.Context(), 1, []cas.Draft{{Step: "a#1", Data: data()}}, nil); err != nil {
				t.Fatalf("%s, texts of %d bytes: %v", e.Type, size, err)
			}
		}
	}
	at := 0
	for x, err := range store.After(t.Context(), "run", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.AnyData()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(textsOf(t, store, said[at]), textsOf(t, store, got)); d != "" || got.EventType() != said[at].EventType() {
			t.Errorf("event %d, %s (-written +read):\n%.1000s", x.Seq, x.Type, d)
		}
		at++
	}
	p := dial(t, serve(t, &replay.Server{Feed: store}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","fromSeq":0}`)
	shown, _ := p.until(protocol.FrameReplayComplete)
	if len(shown) != len(said) || at != len(said) {
		t.Fatalf("%d events shown, %d read, %d written", len(shown), at, len(said))
	}
	for i, e := range shown {
		var have map[string]any
		if err := json.Unmarshal(e.Data, &have); err != nil {
			t.Fatal(err)
		}
		for key, want := range textsOf(t, store, said[i]) {
			if have[key] != want && (want != "" || have[key] != nil) {
				t.Errorf("event %d, %s: %s is %.100v, want %d bytes", e.Seq, e.Type, key, have[key], len(want))
			}
		}
	}
}

// textsOf are the texts of data by their keys, long ones out of their blocks.
func textsOf(t *testing.T, blocks protocol.Blocks, d protocol.Data) map[string]string {
	t.Helper()
	out := map[string]string{}
	for v, i := reflect.ValueOf(d), 0; i < v.NumField(); i++ {
		if text, ok := v.Field(i).Interface().(protocol.Text); ok {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("cbor"), ",")
			if text.Link.Defined() {
				long, err := protocol.ReadPayload(t.Context(), blocks, text.Link)
				if err != nil {
					t.Fatal(err)
				}
				text.S = string(long)
			}
			out[name] = text.S
		}
	}
	return out
}
