package engine_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"wf/agentkit"
	"wf/api"
	"wf/engine"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
	"wf/roles"
)

// newStore is the address of a new store.
func newStore(t testing.TB, s *pgtest.Server) string {
	t.Helper()
	dsn, err := s.Database(context.Background())
	if err == nil {
		_, err = pgstore.Init(context.Background(), dsn, pgstore.Roles{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// on has a bench work in a database.
func (b *bench) on(dsn string, o pgstore.Options) *bench {
	b.t.Helper()
	o.Poll = 50 * time.Millisecond
	s, err := pgstore.Open(context.Background(), dsn, o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.t.Error(err)
		}
	})
	b.e.Store = s
	return b
}

// A run with agents, commands and a sub-workflow.
const (
	allYAML = `
wf: 1
name: all
roles:
  plan: {prompt: You plan., model: script/replies.yaml}
  build: {run: 'echo built >> built.txt; echo ok'}
  part: {workflow: child.yaml, with: {x: 2}}
  code: {prompt: You code., model: script/replies.yaml, tools: [read_file, write_file]}
edges:
  - {from: START, to: plan, prompt: Go}
  - {from: plan, to: build}
  - {from: build, to: part}
  - {from: part, to: code, prompt: "Code ${{ output.said }}"}
  - {from: code, to: END}
outputs: {said: "${{ steps.part.output.said }}"}
`
	partYAML = `
wf: 1
name: part
inputs: {x: {type: integer, required: true}}
roles:
  one: {run: 'echo part >> built.txt; echo ok'}
  two: {set: {said: "${{ inputs.x + 1 }}"}}
  three: {prompt: You think., model: script/replies.yaml}
edges: [{from: START, to: one}, {from: one, to: two}, {from: two, to: three, prompt: Think}, {from: three, to: END}]
outputs: {said: "${{ steps.two.output.said }}"}
`
	allScript = `plan#1: [{text: the plan}]
three#1: [{text: a thought}]
code#1:
  - {tool: write_file, args: {path: out.txt, content: new}}
  - {tool: read_file, args: {path: built.txt}}
  - {text: done}
`
	allCalls = 5 // of models
)

// newAll is a bench for allYAML.
func newAll(t testing.TB) *agents {
	a := newAgents(t, allScript)
	a.write("child.yaml", partYAML)
	return a
}

// every are the records of a run and of its sub-workflows.
func (a *agents) every(id protocol.RunID) (out []string) {
	a.t.Helper()
	all, err := a.e.Descendants(context.Background(), id)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, run := range append([]protocol.RunID{id}, all...) {
		out = append(out, records(a.view(run))...)
	}
	return out
}

// inADirectory are the records of allYAML in a directory.
func inADirectory(t testing.TB) []string {
	a := newAll(t)
	id := a.start(allYAML, "")
	if v := a.drive(id); v.Status != done || string(v.Outputs) != `{"said":3}` {
		t.Fatalf("%s (%s) %s", v.Status, v.Reason, v.Outputs)
	}
	want(t, "calls", a.asked(), allCalls)
	return a.every(id)
}

func TestARunInADatabaseHasTheRecordsOfADirectory(t *testing.T) {
	dsn := newStore(t, pgtest.Shared(t))
	a := newAll(t)
	a.on(dsn, pgstore.Options{})
	id := a.start(allYAML, "")
	if v := a.drive(id); v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	want(t, "calls", a.asked(), allCalls)
	want(t, "records", strings.Join(a.every(id), "\n"), strings.Join(inADirectory(t), "\n"))
	a.proved(id)
	if driven, err := a.e.Store.Driven(t.Context(), id); driven || err != nil {
		t.Errorf("it is driven still: %t, %v", driven, err)
	}
}

// The database is killed while a model is asked, while a command runs, and while a sub-workflow goes on: no call is made twice, and no
// command runs twice.
func TestARunOutlivesTheLossOfItsDatabase(t *testing.T) {
	srv := pgtest.Own(t)
	dsn := newStore(t, srv)
	a := newAll(t)
	told := make(chan error, 100)
	a.on(dsn, pgstore.Options{Outage: func(err error) { told <- err }})
	killed := make(chan struct{}, 10)
	var call, kills atomic.Int64
	a.asking = func() {
		switch call.Add(1) {
		case 1, 2, 4: // within a call of a model, whose answer waits for the database
			if err := srv.Kill(); err != nil {
				t.Error(err)
			}
			kills.Add(1)
			killed <- struct{}{}
		}
	}
	restarted := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		var err error
		for err == nil {
			select {
			case <-killed:
				for lost := false; !lost; {
					lost = <-told != nil
				}
				err = srv.Restart()
			case <-over:
				restarted <- nil
				return
			}
		}
		restarted <- err
	}()
	id := a.start(allYAML, "")
	v := a.drive(id)
	close(over)
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	want(t, "calls", a.asked(), allCalls)
	want(t, "kills", kills.Load(), 3)
	want(t, "commands", a.read("built.txt"), "built\npart\n")
	want(t, "records", strings.Join(a.every(id), "\n"), strings.Join(inADirectory(t), "\n"))
	a.proved(id)
}

// A drive that is to end while the database is away does so, and says what that means.
func TestADriveEndsWhileItsDatabaseIsAway(t *testing.T) {
	engine.SetOutageGrace(t, 300*time.Millisecond)
	srv := pgtest.Own(t)
	dsn := newStore(t, srv)
	a := newAll(t)
	told, killed := make(chan error, 100), make(chan error, 1)
	a.on(dsn, pgstore.Options{Outage: func(err error) { told <- err }})
	a.asking = sync.OnceFunc(func() { killed <- srv.Kill() })
	id := a.start(allYAML, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := a.e.Drive(ctx, id, engine.DriveOptions{})
		ended <- err
	}()
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	if err := <-told; !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("told: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, protocol.ErrUnreachable) || !strings.Contains(err.Error(), "is done again when the run goes on") {
		t.Errorf("the drive ended with: %v", err)
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	if v := a.drive(id); v.Status != done {
		t.Errorf("then: %s (%s)", v.Status, v.Reason)
	}
	a.proved(id)
}

// lease is that of workers in tests that stop one.
const lease = 1500 * time.Millisecond

// behindProxy has a bench work in a database that it loses while the proxy holds its requests.
func (b *bench) behindProxy(srv *pgtest.Server, dsn string) *pgtest.Proxy {
	b.t.Helper()
	p, err := pgtest.NewProxy(srv)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			b.t.Error(err)
		}
	})
	name, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://wf@/"), "?")
	b.on(p.DSN(name), pgstore.Options{Lease: lease})
	return p
}

// A command that says its process id and goes on when it is told to, by pipes that end with it; beside an agent.
const (
	stopsYAML = `
wf: 1
name: stops
roles:
  think: {prompt: You think., model: script/replies.yaml}
  work: {run: 'exec 3> says; echo $$ >&3; read x < hears; echo ok'}
  both: {set: {n: 1}}
edges:
  - {from: START, to: [think, work], prompt: Go}
  - {from: [think, work], to: both}
  - {from: both, to: END}
`
	stopsScript = "think#1: [{text: a thought}]\n"
)

// newStops is a bench for stopsYAML.
func newStops(t testing.TB) *agents {
	a := newAgents(t, stopsScript)
	for _, name := range []string{"says", "hears"} {
		if err := syscall.Mkfifo(filepath.Join(a.dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// command waits until the command of stopsYAML runs; what else is said is read until it has ended.
func (a *agents) command() (says *bufio.Reader) {
	a.t.Helper()
	f, err := os.Open(filepath.Join(a.dir, "says"))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { f.Close() })
	says = bufio.NewReader(f)
	if pid, err := says.ReadString('\n'); err != nil {
		a.t.Fatalf("the command says %q: %v", pid, err)
	}
	return says
}

// killed waits for the end of a command, which nothing overlaps with.
func (a *agents) killed(says *bufio.Reader) {
	a.t.Helper()
	if more, err := io.ReadAll(says); err != nil || len(more) > 0 {
		a.t.Errorf("the command runs beside another one, %s: %v", more, err)
	}
}

// saying is an agent that says one thing more when it has its answer; said is closed once the driver has heard that.
type saying struct {
	*agentkit.Agent
	said chan struct{}
}

func (s saying) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	c, err := s.Agent.Perform(ctx, turn, emit)
	if err == nil {
		err = emit(roles.Soon(ctx), protocol.TextSaid{Content: protocol.NewText("late")})
		close(s.said)
	}
	return c, err
}

// A worker that stops for longer than a lease: another one takes its run over, and what the first one says later is not written.
func TestAWorkerThatStoppedIsReplaced(t *testing.T) {
	srv := pgtest.Shared(t)
	dsn := newStore(t, srv)
	first, second := newStops(t), newStops(t)
	proxy := first.behindProxy(srv, dsn)
	second.behindProxy(srv, dsn)
	id := first.start(stopsYAML, "")
	asked, answer := make(chan struct{}), make(chan struct{})
	first.asking = func() {
		close(asked)
		<-answer
	}
	said := make(chan struct{})
	first.e.Performers[protocol.ActPrompt] = saying{&first.agent, said}
	ended := make(chan error, 1)
	go func() {
		_, err := first.e.Drive(t.Context(), id, engine.DriveOptions{})
		ended <- err
	}()
	says := first.command()
	<-asked
	if _, err := second.e.Drive(t.Context(), id, engine.DriveOptions{}); !errors.Is(err, protocol.ErrRunLive) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("a second worker drives: %v", err)
	}
	proxy.HoldRequests()
	close(answer)
	finished := make(chan *api.Run, 1)
	go func() {
		for {
			_, err := second.e.Drive(t.Context(), id, engine.DriveOptions{})
			if errors.Is(err, protocol.ErrRunLive) { // its last beat is not old yet
				continue
			}
			if err != nil {
				t.Error(err)
			}
			v, err := second.e.View(context.WithoutCancel(t.Context()), id)
			if err != nil {
				t.Error(err)
			}
			finished <- v
			return
		}
	}()
	first.killed(says)
	first.command() // by the second worker
	first.write("hears", "go\n")
	v := <-finished
	if v.Status != done {
		t.Fatalf("%s (%s)", v.Status, v.Reason)
	}
	_, last, err := second.e.Store.Tip(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	<-said // and not stored
	proxy.Release()
	if err := <-ended; !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("the first worker ended with: %v", err)
	}
	if _, seq, err := second.e.Store.Tip(t.Context(), id); err != nil || seq != last {
		t.Errorf("it wrote %d events more, %v", seq-last, err)
	}
	want(t, "calls of the second", second.asked(), 1)
	second.proved(id)
}

// A worker that comes back before another one takes its run: its command was ended, and is a new attempt, or, where it is marked once, a
// question; the call that was made is not made again.
func TestAWorkerThatComesBackInTime(t *testing.T) {
	srv := pgtest.Shared(t)
	dsn := newStore(t, srv)
	for _, once := range []bool{false, true} {
		t.Run(fmt.Sprint("once ", once), func(t *testing.T) {
			a := newStops(t)
			proxy := a.behindProxy(srv, dsn)
			id := a.start(strings.ReplaceAll(stopsYAML, "work: {", fmt.Sprintf("work: {once: %t, ", once)), "")
			asked, answer := make(chan struct{}), make(chan struct{})
			a.asking = func() {
				close(asked)
				<-answer
			}
			ended := make(chan error, 1)
			go func() {
				_, err := a.e.Drive(t.Context(), id, engine.DriveOptions{})
				ended <- err
			}()
			says := a.command()
			<-asked
			proxy.HoldRequests()
			close(answer)
			a.killed(says)
			proxy.Release()
			status, failed := done, 1
			if once {
				status, failed = protocol.Waiting, 0
			} else {
				a.command()
				a.write("hears", "go\n")
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			v := a.view(id)
			want(t, "status", v.Status, status)
			want(t, "calls", a.asked(), 1)
			want(t, "failed attempts", strings.Count(strings.Join(eventsOf(a, id), " "), "attempt_failed"), failed)
			a.proved(id)
		})
	}
}

// A database that takes what it is sent and says nothing more: a drive that is to end does so then too.
func TestADriveEndsWhileItsDatabaseHangs(t *testing.T) {
	engine.SetOutageGrace(t, 300*time.Millisecond)
	srv := pgtest.Shared(t)
	a := newStops(t)
	proxy := a.behindProxy(srv, newStore(t, srv))
	id := a.start(stopsYAML, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := a.e.Drive(ctx, id, engine.DriveOptions{})
		ended <- err
	}()
	says := a.command()
	proxy.HoldRequests()
	cancel()
	if err := <-ended; !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("the drive ended with: %v", err)
	}
	a.killed(says)
	proxy.Release()
	go func() {
		_, err := a.e.Drive(t.Context(), id, engine.DriveOptions{})
		ended <- err
	}()
	a.command()
	a.write("hears", "go\n")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want(t, "status", a.view(id).Status, done)
	a.proved(id)
}

// The same for random definitions, beside a directory, with sessions that the server ends: W-18.
func TestW18InADatabaseToo(t *testing.T) {
	srv := pgtest.Shared(t)
	dsn := newStore(t, srv)
	checks := flag.Lookup("rapid.checks")
	was := checks.Value.String()
	if n, err := strconv.Atoi(was); err != nil || n >= 5 {
		if err := checks.Value.Set(strconv.Itoa(n / 5)); err != nil {
			t.Fatal(err)
		}
		defer checks.Value.Set(was)
	}
	var cuts sync.WaitGroup
	ran, cut := map[protocol.RunStatus]int{}, 0
	alike := func(rt *rapid.T) {
		inDir := func() *bench { return newBench(t) }
		inDatabase := func() *bench {
			cuts.Wait() // those of the check before are over, else they would end the session that opens the store
			b := newBench(t).on(dsn, pgstore.Options{})
			b.cut = func() {
				cut++
				cuts.Go(func() {
					if err := srv.Exec(context.Background(), srv.DSN("postgres"), `select pg_terminate_backend(pid) from pg_stat_activity where datname <> 'postgres'`); err != nil {
						t.Error(err)
					}
				})
			}
			return b
		}
		concludeAlike(rt, ran, []random{{"", inDir}, {"cut", inDatabase}, {"cut", inDatabase}})
	}
	// A definition may come to its end before a session is ended, and one that is suspended is not tried in a database at all: with
	// few checks, as under -short, that may be all of them.
	for try := 0; try == 0 || cut == 0 && try < 50; try++ {
		rapid.Check(t, alike)
	}
	cuts.Wait()
	t.Logf("%v, %d times all sessions were ended", ran, cut)
	if cut == 0 {
		t.Error("no session was ended")
	}
}
