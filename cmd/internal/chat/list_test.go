package chat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

	behind int // runs that are not searched yet
}

func (d *shop) List(_ context.Context, q api.Query) (*api.Page, error) {
	p := &api.Page{Unread: []*protocol.Error{protocol.ErrCorrupt}}
	if q.Search != "" {
		p.Searched = &api.Searched{Behind: d.behind}
	}
	at := slices.IndexFunc(d.rows, func(r api.Row) bool { return string(r.ID) == q.Before })
	for _, r := range d.rows[at+1:] {
		v := d.runs[r.ID]
		switch {
		case q.Type != "" && v != nil && v.Info.Type != q.Type, !strings.Contains(string(r.ID)+r.Title, q.Text), !strings.Contains(d.said[r.ID], q.Search):
		case len(p.Items) == q.Limit:
			p.Next = new(string(p.Items[q.Limit-1].ID))
			return p, nil
		default:
			p.Items = append(p.Items, r)
		}
	}
	return p, nil
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
	if w.From > 0 {
		if err := f(event(w.From+1, "you#8", protocol.Answered{Text: protocol.NewText("not the newest")})); err != nil || w.To != 90 || w.From != 60 {
			return fmt.Errorf("the newest words are looked for in events %d to %d: %w", w.From, w.To, err)
		}
	}
	u := event(2, "you#1", protocol.Answered{Text: protocol.NewText(d.said[run])})
	if w.To < 2 {
		return errors.New("the answer was not asked for")
	}
	if err := f(u); err != nil {
		return err
	}
	return f(event(3, "you#2", protocol.Answered{Text: protocol.NewText("[message from ada]\n" + d.said[run]), Messages: 1}))
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
	if len(out.List.Rows) != len(want) || out.List.Title != "Chats, 1 run cannot be read (wf ls names them)" {
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

// All chats of a store are read, in parts, and found by what was said in them.
func TestChatsAreReadInParts(t *testing.T) {
	for _, chats := range []int{1, 49, 50, 51, 100, 101} {
		d := &shop{runs: map[protocol.RunID]*api.Run{}, said: map[protocol.RunID]string{}}
		for i := range chats + 300 {
			r := api.Row{ID: protocol.RunID(fmt.Sprintf("RUN%03d", i)), Title: "chat", Seq: 90, Updated: fmt.Sprint(1000 - i)}
			d.rows, d.runs[r.ID], d.said[r.ID] = append(d.rows, r), &api.Run{ID: r.ID}, fmt.Sprintf("words%03d", i)
			if i >= 300 {
				d.runs[r.ID].Info.Type = protocol.ChatType
			}
		}
		s, err := chat.Open(t.Context(), chat.Place{Service: d, Follower: d, Me: "ada"}, "RUN007")
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Command(t.Context(), chat.Command{Action: chat.Sessions})
		if err != nil {
			t.Fatal(err)
		}
		l := out.List
		if r := l.Rows[0]; r.Value != "RUN007" || !r.Current {
			t.Errorf("the first row is %+v, and not the run on the screen", r)
		}
		rows, parts := l.Rows[1:], 1
		for next := l.Next; next != ""; parts++ {
			more, err := l.Find(t.Context(), "", next)
			if err != nil {
				t.Fatal(err)
			}
			rows, next = append(rows, more.Rows...), more.Next
		}
		if len(rows) != chats || parts != (chats+49)/50 {
			t.Errorf("%d of %d chats are in %d parts", len(rows), chats, parts)
		}
		for i, r := range rows {
			if want := fmt.Sprintf("RUN%03d", 300+i); r.Value != want || r.Current {
				t.Errorf("row %d is %+v, want %s", i, r, want)
			}
		}
		last := fmt.Sprintf("%03d", 299+chats)
		for filter, want := range map[string]string{"words" + last: "RUN" + last, "RUN" + last: "RUN" + last, "words299": "", "?!": ""} {
			if found, err := l.Find(t.Context(), filter, ""); err != nil || found.Note != "" || len(found.Rows) > 1 || (want == "") != (len(found.Rows) == 0) || want != "" && found.Rows[0].Value != want {
				t.Errorf("%q: %+v, %v", filter, found, err)
			}
		}
		d.behind = 3
		if found, err := l.Find(t.Context(), "words", ""); err != nil || !strings.Contains(found.Note, "3 runs") || len(found.Rows) != min(chats, 50) || found.Rows[0].Value != "RUN300" {
			t.Errorf("%+v, %v", found, err)
		}
		d.behind = 0
		if found, err := l.Find(t.Context(), "words", ""); err != nil || (found.Note != "") != (chats > 50) {
			t.Errorf("of %d chats: %q, %v", chats, found.Note, err)
		}
	}
}

// A list of which a part was read goes on as the cursor comes near its end, and a filter finds rows that were not read.
func TestALongListIsReadAndSearchedWhereItIs(t *testing.T) {
	r := newRoom()
	talk(r)
	rows := func(from, to int) (out []chat.Row) {
		for i := from; i < to; i++ {
			out = append(out, chat.Row{Value: fmt.Sprintf("R%d", i), Text: fmt.Sprintf("row %d", i)})
		}
		return out
	}
	asked, answer := make(chan string), make(chan chat.Found)
	r.command = func(c chat.Command) (chat.Outcome, error) {
		if c.Arg != "" {
			r.said <- c.Arg
			return chat.Outcome{Text: "taken"}, nil
		}
		return chat.Outcome{List: &chat.List{Title: "Chats", Hint: "choose", Do: chat.Sessions, Rows: rows(0, 50), Next: "50", Find: func(_ context.Context, filter, from string) (chat.Found, error) {
			asked <- filter + "@" + from
			if f := <-answer; f.Note != "fails" {
				return f, nil
			}
			return chat.Found{}, errors.New("the line is down")
		}}}, nil
	}
	s := show(t, r, 70, 14)
	s.Shows("your turn")
	s.Press("/sessions\r")
	s.Shows("(50, and more below)")
	next := func(want string, f chat.Found) {
		t.Helper()
		select {
		case got := <-asked:
			if got != want {
				t.Fatalf("asked for %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%q was not asked for; the screen is\n%s", want, s)
		}
		answer <- f
	}
	s.Press(screentest.End)
	next("@50", chat.Found{Note: "fails"})
	s.Shows("the line is down")
	s.Press("x")
	next("x@", chat.Found{})
	s.Shows("no row matches")
	s.Press("\x7f" + screentest.End)
	next("@50", chat.Found{Rows: rows(49, 60)})
	s.Shows("Chats (60)")
	s.Press("5")
	s.Shows("/ 5 ")
	s.Press("6") // while "5" is looked for
	s.Shows("/ 56 ")
	next("5@", chat.Found{Rows: rows(900, 901)})
	next("56@", chat.Found{Rows: append(rows(3, 4), rows(700, 702)...), Note: "one run is not searched"})
	now := s.Shows("/ 56 (4) · one run is not searched")
	if !strings.Contains(now, "row 3 ") || !strings.Contains(now, "row 701") || strings.Contains(now, "900") {
		t.Errorf("the screen is\n%s", now)
	}
	s.Press(screentest.End + "\r")
	s.Shows("taken")
	if got := r.heard(t); got != "R701" {
		t.Errorf("chose %s", got)
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
