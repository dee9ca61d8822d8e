package chat_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/screentest"
	"wf/protocol"
)

// lists answers /model and /sessions.
func lists(r *room) {
	models := &chat.List{Title: "Model", Hint: "choose", At: 1, Do: chat.Model, Own: true, Rows: []chat.Row{
		{Value: "a/large", Text: "a/large  $3 in"}, {Value: "a/small", Text: "a/small  unpriced", Current: true}, {Value: "b/漢字", Text: "b/漢字\x1b[2J"}}}
	r.command = func(c chat.Command) (chat.Outcome, error) {
		r.said <- string(c.Action) + " " + c.Arg
		if c.Arg == "" {
			return chat.Outcome{List: models}, nil
		}
		return chat.Outcome{Text: "taken"}, nil
	}
}

func TestAModelIsChosenFromTheList(t *testing.T) {
	for keys, want := range map[string]string{
		"\r":                                     "model a/small",
		screentest.Up + "\r":                     "model a/large",
		screentest.Down + screentest.Down + "\r": "model b/漢字",
		"LARGE\r":                                "model a/large",
		"b/漢\r":                                  "model b/漢字",
		"unpri in\x7f\x7f\x7f\r":                 "model a/small",
		"c/other\r":                              "model c/other",
		"zz" + "\x15" + screentest.End + "\r":    "model b/漢字",
	} {
		r := newRoom()
		talk(r)
		lists(r)
		s := show(t, r, 60, 12)
		s.Shows("your turn")
		s.Press("/model\r")
		now := s.Shows("● a/small")
		if strings.Contains(now, "2J") || strings.Count(now, "●") != 1 {
			t.Errorf("the screen is\n%s", now)
		}
		s.Press(keys)
		s.Shows("taken")
		if a, b := r.heard(t), r.heard(t); a != "model " || b != want {
			t.Errorf("%q: %q, %q, want %q", keys, a, b, want)
		}
	}
}

func TestAListIsClosedByEsc(t *testing.T) {
	r := newRoom()
	talk(r)
	lists(r)
	s := show(t, r, 40, 10)
	s.Shows("your turn")
	s.Press("/model\r")
	s.Shows("╭─ Model")
	s.Press("zebra crossing")
	s.Shows("Enter takes zebra crossing")
	s.Press(screentest.Esc)
	s.Shows("your turn")
	if got := r.heard(t); got != "model " || len(r.said) > 0 {
		t.Errorf("chose %q", got)
	}
}

// What a person writes while a list is made chooses nothing of it.
func TestALateListTakesNoKeyOfAMessage(t *testing.T) {
	r := newRoom()
	talk(r)
	lists(r)
	made, wait := r.command, make(chan struct{})
	r.command = func(c chat.Command) (chat.Outcome, error) {
		<-wait
		return made(c)
	}
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	s.Press("/model\rsmall")
	s.Shows("> small")
	close(wait)
	s.Shows("then /model")
	s.Press("\r")
	if a, b := r.heard(t), r.heard(t); a != "model " || b != "you#2: small" {
		t.Errorf("%q, %q", a, b)
	}
}

// The run that is left would go on beside the one with another model.
func TestTheModelIsNotChangedUnderAnAgentThatWorks(t *testing.T) {
	r, s := atWork(t)
	s.Press("/model a/b\r")
	s.Shows("the agent works: Esc stops it, then /model")
	s.Press("/fork\r")
	s.Shows("the agent works: Esc stops it, then /fork")
	r.silent(t)
}

func TestAnUnknownCommandNamesTheNearest(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	for line, near := range map[string]string{"/modle": "did you mean /model?", "/seesions x": "did you mean /sessions?", "/udno": "did you mean /undo?", "/zebra": "/help lists them",
		"/" + strings.Repeat("x", 300): "/help lists them"} {
		s.Press(line + "\r")
		s.Shows(near)
		s.Press("/c\r")
	}
}

// The help names every command and key.
func TestTheHelpIsWhole(t *testing.T) {
	r := newRoom()
	s := show(t, r, 100, 60)
	s.Press("/help\r")
	now := s.Shows("╭─ Help")
	for _, name := range []string{"/clear /c", "/compact", "/reset", "/dump", "/think", "/resume", "/fork", "/undo", "/redo", "/rewind", "/cost", "/task", "/memory", "/model", "/sessions", "/help", "/quit",
		"Esc ", "Ctrl+C", "Ctrl+O", "y, a, n", "@ "} {
		if !strings.Contains(now, name) {
			t.Errorf("nothing of %s in\n%s", name, now)
		}
	}
}

// shop has chats and other runs.
type shop struct {
	desk
	rows []api.Row
	runs map[protocol.RunID]*api.Run
	said map[protocol.RunID]string
}

func (d *shop) List(context.Context, api.Query) (*api.Page, error) {
	return &api.Page{Items: d.rows, Unread: []*protocol.Error{protocol.ErrCorrupt}}, nil
}

func (d *shop) Run(_ context.Context, run protocol.RunID, _ api.Window) (*api.Run, error) {
	if v := d.runs[run]; v != nil {
		return v, nil
	}
	if run == "LEFT" {
		return nil, protocol.ErrRunDeleted
	}
	return nil, protocol.ErrUnknownRun
}

func (d *shop) Follow(_ context.Context, run protocol.RunID, w api.Following, f func(api.Update) error) error {
	u := event(2, "you#1", protocol.Answered{Text: protocol.NewText(d.said[run])})
	if w.To < 2 {
		return errors.New("the answer was not asked for")
	}
	return f(u)
}

func (d *shop) Agent(context.Context, protocol.RunID) (api.Agent, error) {
	return api.Agent{Model: "a/small"}, nil
}

func newShop() *shop {
	cost, from := 0.1234, api.CID("f")
	d := &shop{runs: map[protocol.RunID]*api.Run{}, said: map[protocol.RunID]string{"RUN": "first \x1b[2Jwords", "OLD": "older words", "FREE": "free words"}}
	add := func(run protocol.RunID, row api.Row, info api.RunInfo) {
		row.ID, row.Seq = run, 90
		d.rows = append(d.rows, row)
		d.runs[run] = &api.Run{ID: run, Info: info, CostUSD: row.CostUSD}
		if n := row.Usage.Input; n > 0 {
			d.runs[run].Usage.Input = &n
		}
	}
	used := api.RowUsage{Calls: 1, Input: 10}
	add("RUN", api.Row{Title: "chat", Status: protocol.Waiting, CostUSD: &cost, Usage: used}, api.RunInfo{Type: protocol.ChatType})
	add("JOB", api.Row{Title: "job", Status: protocol.Done}, api.RunInfo{})
	add("OLD", api.Row{Title: "talk", Status: protocol.Running, Driving: api.Driving{Idle: api.Interrupted}, Usage: used}, api.RunInfo{Type: protocol.ChatType, ForkedFrom: &from})
	add("FREE", api.Row{Title: "chat", Status: protocol.Waiting}, api.RunInfo{Type: protocol.ChatType})
	d.rows = append(d.rows, api.Row{ID: "GONE", Title: "chat"}, api.Row{ID: "LEFT", Title: "chat"})
	return d
}

func TestTheChatsAreListedAndGoneTo(t *testing.T) {
	d := newShop()
	took := protocol.RunID("")
	s, err := chat.Open(t.Context(), chat.Place{Service: d, Follower: d, Me: "ada", TakeUp: func(_ context.Context, run protocol.RunID) (protocol.RunID, string, error) {
		took = run
		if run == "FREE" {
			return "", "", protocol.ErrForeign
		}
		return run, "a word", nil
	}}, "RUN")
	if err != nil {
		t.Fatal(err)
	}
	do := func(arg string) (chat.Outcome, error) {
		return s.Command(t.Context(), chat.Command{Action: chat.Sessions, Arg: arg})
	}
	out, err := do("")
	if err != nil || out.List == nil || out.List.Do != chat.Sessions {
		t.Fatalf("%+v, %v", out, err)
	}
	want := []chat.Row{{Value: "RUN", Text: "   ?     $0.12  first words · waiting · RUN", Current: true},
		{Value: "OLD", Text: "   ?  unpriced  fork: talk: older words · interrupted · OLD"}, {Value: "FREE", Text: "   ?         –  free words · waiting · FREE"}}
	if len(out.List.Rows) != len(want) || out.List.Title != "Chats, and 1 run that cannot be read (wf ls names them)" {
		t.Fatalf("%q: %+v", out.List.Title, out.List.Rows)
	}
	for i := range want {
		if out.List.Rows[i] != want[i] {
			t.Errorf("row %d is %+v", i, out.List.Rows[i])
		}
	}
	if out, err := do("OLD"); err != nil || !out.Moved || out.Text != "a word" || took != "OLD" || s.Info().Run != "OLD" {
		t.Errorf("%+v, %v, now in %s", out, err, s.Info().Run)
	}
	if spent, err := s.Spent(t.Context()); spent != chat.Unpriced || err != nil {
		t.Errorf("it cost %q, %v", spent, err)
	}
	if _, err := do("FREE"); !errors.Is(err, protocol.ErrForeign) || s.Info().Run != "OLD" {
		t.Errorf("%v, now in %s", err, s.Info().Run)
	}
}

// The models of the place, with the one in use; where that is none of them it is the first.
func TestTheModelsAreListed(t *testing.T) {
	known := []chat.Row{{Value: "a/large"}, {Value: "a/small"}}
	for now, want := range map[string]int{"a/small": 1, "local/tiny": 0} {
		d := &desk{}
		near := &agentOf{desk: d, model: now}
		s, err := chat.Open(t.Context(), chat.Place{Service: d, Follower: d, Near: near, Me: "ada", Models: func(context.Context) ([]chat.Row, error) { return append([]chat.Row{}, known...), nil }}, "RUN")
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Command(t.Context(), chat.Command{Action: chat.Model})
		if err != nil || out.List == nil || out.List.At != want || !out.List.Rows[want].Current || out.List.Rows[want].Value != now || !out.List.Own {
			t.Errorf("with %s: %+v, %v", now, out.List, err)
		}
	}
}

// agentOf is a desk whose agent has a model.
type agentOf struct {
	*desk
	model string
}

func (d *agentOf) Agent(context.Context, protocol.RunID) (api.Agent, error) {
	return api.Agent{Model: d.model}, nil
}

// A chat in which nothing was concluded yet is forked at its beginning, and one that was interrupted waits for a word.
func TestTheModelIsChangedFromWhereTheChatIs(t *testing.T) {
	cid := api.CID("c")
	for _, c := range []struct {
		run  api.Run
		want string
	}{
		{api.Run{Status: protocol.Waiting, Steps: []*api.Step{{ID: "you#1"}}}, "fork RUN you#1 false map[:[big/one]] hold false"},
		{api.Run{Status: protocol.Waiting, Steps: []*api.Step{{ID: "you#1", CID: &cid}, {ID: "wf#1", CID: &cid}, {ID: "you#2"}}}, "fork RUN wf#1 true map[:[big/one]] hold false"},
		{api.Run{Status: protocol.Suspended, Steps: []*api.Step{{ID: "you#1", CID: &cid}, {ID: "wf#1"}}}, "fork RUN you#1 true map[:[big/one]] hold true"},
	} {
		d := &forker{run: c.run}
		s, err := chat.Open(t.Context(), chat.Place{Service: d, Follower: d, Me: "ada"}, "RUN")
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Command(t.Context(), chat.Command{Action: chat.Model, Arg: "big/one"})
		if err != nil || !out.Moved || !strings.Contains(out.Text, "the model is big/one from here on") || len(d.did) != 1 || d.did[0] != c.want {
			t.Errorf("%+v, %v: %q, want %q", out, err, d.did, c.want)
		}
	}
}

// forker is a run that is forked.
type forker struct {
	desk
	run api.Run
}

func (d *forker) Run(_ context.Context, id protocol.RunID, _ api.Window) (*api.Run, error) {
	v := d.run
	v.ID = id
	return &v, nil
}

func (d *forker) Fork(_ context.Context, run protocol.RunID, f api.Fork) (api.Accepted, error) {
	d.note("fork %s %s %t %v hold %t", run, f.Step, f.After, f.Models, f.Hold)
	return api.Accepted{ID: "FORK"}, nil
}
