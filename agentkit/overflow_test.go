package agentkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/modeltest"
	"wf/agentkit/openai"
	"wf/protocol"
)

// overflows are how a server refuses a request of so many tokens, by its window.
var overflows = map[string]func(held, window int) modeltest.Answer{
	"llama-server": func(held, window int) modeltest.Answer {
		return modeltest.Answer{Status: 400, Body: fmt.Sprintf(`{"error":{"code":400,"message":"the request exceeds the available context size",`+
			`"type":"exceed_context_size_error","n_prompt_tokens":%d,"n_ctx":%d}}`, held, window)}
	},
	"vLLM": func(held, window int) modeltest.Answer {
		return modeltest.Answer{Status: 400, Body: fmt.Sprintf(`{"object":"error","message":"This model's maximum context length is %d tokens. `+
			`However, your request has %d input tokens.","code":400}`, window, held)}
	},
	"Anthropic": func(held, window int) modeltest.Answer {
		return modeltest.Answer{Status: 400, Body: fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: %d tokens > %d maximum"}}`, held, window)}
	},
	"no numbers": func(int, int) modeltest.Answer {
		return modeltest.Answer{Status: 400, Body: `{"error":{"message":"Too much.","code":"context_length_exceeded"}}`}
	},
}

// tokensIn is how many tokens a request holds for the servers of these tests.
func tokensIn(r modeltest.Request) int { return (len(r.Body) + 3) / 4 }

// narrow is a server whose model reads window tokens; what fits is answered by answer.
func narrow(t testing.TB, window int, refuse func(held, window int) modeltest.Answer, answer func(modeltest.Request) modeltest.Answer) *modeltest.Server {
	return modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		if held := tokensIn(r); held > window {
			return refuse(held, window)
		}
		return answer(r)
	})
}

func isSummary(r modeltest.Request) bool { return strings.Contains(string(r.Body), "Summarise ") }

// long conversations, of which the model reads a part only.
const narrowWindow = 1500

func TestF04AnOverflowCompactsTheConversation(t *testing.T) {
	for wire, open := range wires {
		for who, refuse := range overflows {
			t.Run(wire+" "+who, func(t *testing.T) {
				s := narrow(t, narrowWindow, refuse, func(r modeltest.Request) modeltest.Answer {
					if isSummary(r) {
						return modeltest.Text("Many tries.")
					}
					return modeltest.Text("Done.")
				})
				st, j := overWire(t, 30, s, open), &journal{}
				st.agent.Window = func(string) int { return 100_000 } // as the config has it
				c, err := st.perform(t, j)
				if err != nil || *c.Text != "Done." {
					t.Fatalf("%v: %v", err, j.types())
				}
				u := find[protocol.Usage](j)
				if u[0].Stop != protocol.StopOverflow || u[0].Window == 0 || u[0].Held <= u[0].Window || u[0].Input != nil {
					t.Errorf("the refusal is journaled as %+v", u[0])
				}
				if who != "no numbers" && (u[0].Window != narrowWindow || u[0].Held != int64(tokensIn(s.Requests()[0]))) {
					t.Errorf("it learnt %d tokens of a request of %d", u[0].Window, u[0].Held)
				}
				if n := len(find[protocol.CompactionDraft](j)); n != 1 {
					t.Errorf("compacted %d times", n)
				}
				if r := s.Requests(); len(r) > 4 || tokensIn(r[len(r)-1]) > narrowWindow {
					t.Errorf("%d requests, the last of %d tokens", len(r), tokensIn(r[len(r)-1]))
				}
			})
		}
	}
}

// The window that was learnt holds for the next visits: they are compacted before they are refused.
func TestF04ALearntWindowIsKept(t *testing.T) {
	s := narrow(t, narrowWindow, overflows["vLLM"], func(r modeltest.Request) modeltest.Answer { return modeltest.Text("Done.") })
	st, j := overWire(t, 20, s, wires["openai"]), &journal{}
	st.turn.Windows, st.turn.LastUsage = map[string]int64{"script/replies.yaml": narrowWindow}, 1450
	if _, err := st.perform(t, j); err != nil {
		t.Fatal(err)
	}
	if u := find[protocol.Usage](j); len(find[protocol.CompactionDraft](j)) != 1 || u[0].Stop != "" {
		t.Errorf("got %v, %+v", j.types(), u[0])
	}
	for _, r := range s.Requests() {
		if tokensIn(r) > narrowWindow {
			t.Errorf("a request of %d tokens was sent", tokensIn(r))
		}
	}
}

// A result that does not fit overflows in the middle of the work.
func TestF04AnOverflowCompactsTheWorkOfAVisit(t *testing.T) {
	for wire, open := range wires {
		t.Run(wire, func(t *testing.T) {
			s := narrow(t, narrowWindow, overflows["Anthropic"], func(r modeltest.Request) modeltest.Answer {
				switch n := r.Results(); {
				case isSummary(r):
					return modeltest.Text("All r.")
				case n < 2 && !strings.Contains(string(r.Body), "All r."):
					return modeltest.Calls(modeltest.Call{ID: fmt.Sprintf("c%d", n), Name: "read", Args: `{"n":2800}`})
				}
				return modeltest.Text("Done.")
			})
			st, j := overWire(t, 1, s, open), &journal{}
			c, err := st.perform(t, j)
			if err != nil || *c.Text != "Done." {
				t.Fatalf("%v: %v", err, j.types())
			}
			d := find[protocol.Compacted](j)
			if len(d) != 1 || d[0].Scope != protocol.ScopeVisit || d[0].Summary.S != "All r." {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestF04NothingToFreeIsOneClearError(t *testing.T) {
	for name, c := range map[string]struct {
		visits int
		params string
		refuse func(held, window int) modeltest.Answer
		most   int // requests
		want   []string
	}{
		"a first message that is too long": {visits: 1, refuse: overflows["vLLM"], most: 1,
			want: []string{"reads at most 100 tokens", "the request holds ", "Give the role coder less at once", "The provider says: "}},
		"a message that is too long after others": {visits: 9, refuse: overflows["llama-server"], most: 3,
			want: []string{"reads at most 100 tokens", "take a model with a larger window"}},
		"an answer that has no room": {visits: 9, most: 1, refuse: func(int, int) modeltest.Answer {
			return modeltest.Answer{Status: 400, Body: `{"error":{"message":"max_tokens is too large: 4096. This model's maximum context length is 4096 tokens and your request has 300 input tokens"}}`}
		}, want: []string{"reads at most 4096 tokens, its answer included", "holds 300", "Lower max_tokens"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := narrow(t, 100, c.refuse, nil)
			st, j := overWire(t, c.visits, s, wires["openai"]), &journal{}
			st.turn.Role.Params = c.params
			_, err := st.perform(t, j)
			var f *protocol.Failure
			if !errors.As(err, &f) || f.Code != "context_full" || f.Suspend {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(f.Message, want) {
					t.Errorf("%q is missing in: %s", want, f.Message)
				}
			}
			if n := len(s.Requests()); n > c.most {
				t.Errorf("%d requests were made: %v", n, j.types())
			}
			again, err := st.perform(t, j)
			if !errors.As(err, &f) || f.Code != "context_full" || len(s.Requests()) > c.most {
				t.Errorf("after a crash: %v, %v, %d requests", again, err, len(s.Requests()))
			}
		})
	}
}

// A process that dies at any point of it leaves what another goes on with: nothing is compacted
// twice, and no request of a size that was refused is made again.
func TestF04AKilledVisitKnowsTheWindow(t *testing.T) {
	start := func(t *testing.T) (*stage, *modeltest.Server) {
		s := narrow(t, narrowWindow, overflows["llama-server"], func(r modeltest.Request) modeltest.Answer {
			switch n := r.Results(); {
			case isSummary(r) && n > 0:
				return modeltest.Text("All r.")
			case isSummary(r):
				return modeltest.Text("Many tries.")
			case n < 2 && !strings.Contains(string(r.Body), "All r."):
				return modeltest.Calls(modeltest.Call{ID: fmt.Sprintf("c%d", n), Name: "read", Args: `{"n":2600}`})
			}
			return modeltest.Text("Done.")
		})
		return overWire(t, 30, s, wires["openai"]), s
	}
	whole, j := overflowing(t, start)
	for stop := 1; stop < len(j.commits); stop++ {
		t.Run(fmt.Sprintf("after commit %d", stop), func(t *testing.T) {
			again, s := start(t)
			cut := &journal{stop: stop}
			if _, err := again.perform(t, cut); !errors.Is(err, errKilled) {
				t.Fatalf("got %v", err)
			}
			cut.stop = 0
			again.turn.History = moved(again.turn.History, cut)
			if _, err := again.perform(t, cut); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(j.types(), cut.types()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(whole, bodiesOf(s)); d != "" {
				t.Errorf("the requests differ: %s", d)
			}
		})
	}
}

// overflowing performs a whole visit that overflows both before its first answer and within its work.
func overflowing(t *testing.T, start func(*testing.T) (*stage, *modeltest.Server)) ([]string, *journal) {
	t.Helper()
	st, s := start(t)
	j := &journal{}
	if _, err := st.perform(t, j); err != nil {
		t.Fatalf("%v: %v", err, j.types())
	}
	if n := len(find[protocol.CompactionDraft](j)) + len(find[protocol.Compacted](j)); n < 2 {
		t.Fatalf("compacted %d times: %v", n, j.types())
	}
	return bodiesOf(s), j
}

// bodiesOf are the requests of a server, each once: one that was made again after a crash is the
// same.
func bodiesOf(s *modeltest.Server) []string {
	var out []string
	for _, r := range s.Requests() {
		out = append(out, string(r.Body))
	}
	return unique(out)
}

// A real server says it by itself.
func TestF04LlamaServerOverflows(t *testing.T) {
	base := modeltest.Llama(t, "-c", "2048", "-np", "1")
	st, j := working(t, 30, "coder#1: [{text: unused}]"), &journal{}
	st.turn.Role.Params = `{"max_tokens":16,"temperature":"0.0"}`
	st.agent.Models = func(string, string) (llms.Model, error) {
		return openai.New("local/tiny", "tiny", openai.Config{BaseURL: base})
	}
	if _, err := st.perform(t, j); err != nil {
		t.Fatalf("%v: %v", err, j.types())
	}
	u := find[protocol.Usage](j)
	b, _ := json.Marshal(u)
	t.Logf("%s", b)
	if u[0].Stop != protocol.StopOverflow || u[0].Window != 2048 || u[0].Held <= 2048 || len(find[protocol.CompactionDraft](j)) != 1 {
		t.Errorf("got %+v, %v", u[0], j.types())
	}
}
