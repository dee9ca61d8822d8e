package cas_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"wf/cas"
	"wf/cas/castest"
	"wf/cas/castest/inmemory"
	"wf/protocol"
)

// childEnv makes the test binary one of the processes below instead; its arguments are lines.
const childEnv = "CASTEST_CHILD"

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(strings.Split(args, "\n")); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	inmemory.TempDirs()
	goleak.VerifyTestMain(m)
}

func flock(t *testing.T, f *os.File) {
	t.Helper()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// child is another process: "append DIR RUN N" appends and prints each seq once it is durable;
// N is −1 for ever. "hold DIR" prints held and keeps the store until stdin closes, "read DIR"
// keeps it for reading. "drive DIR RUN" says driven and drives a run until stdin closes, "redrive
// DIR RUN N" begins to drive it and stops N times. "slow" is append on a slow disk, with the patience of users; "turn DIR" keeps the turn. "backup DIR TO" makes a gentle backup, and after each part of it prints a line and reads one.
func child(args []string) error {
	ctx := context.Background()
	o := cas.Options{Wait: patience}
	if n, err := strconv.Atoi(os.Getenv(killEnv)); err == nil {
		o.Before = killAfter(n)
	}
	if args[0] == "turn" {
		return cas.TurnForTest(args[1], held)
	}
	if args[0] == "slow" {
		o = cas.Options{Before: slowDisk, Warn: func(err error) { fmt.Println("told", err) }}
	}
	s, err := cas.Open(ctx, args[1], o)
	if err != nil {
		return err
	}
	switch args[0] {
	case "append", "slow":
		n, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		if err := appendEvents(ctx, s, protocol.RunID(args[2]), n); err != nil {
			return err
		}
	case "backup":
		in := bufio.NewReader(os.Stdin)
		_, err := cas.Backup(ctx, s, args[2], cas.BackupOptions{Gentle: true, Progress: func(int64, int64) {
			fmt.Println()
			if _, err := in.ReadString('\n'); err != nil {
				os.Exit(0)
			}
		}})
		if err != nil {
			return err
		}
	case "drive":
		claim, err := s.Claim(ctx, protocol.RunID(args[2]))
		if err != nil {
			return err
		}
		fmt.Println("driven")
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		if err := claim.Release(ctx); err != nil {
			return err
		}
	case "redrive":
		n, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		for range n {
			claim, err := s.Claim(ctx, protocol.RunID(args[2]))
			if err != nil {
				return err
			}
			if err := claim.Release(ctx); err != nil {
				return err
			}
		}
	case "hold", "read":
		hold := cas.HoldForTest
		if args[0] == "read" {
			hold = cas.ReadForTest
		}
		if err := hold(s, held); err != nil {
			return err
		}
	}
	return s.Close()
}

// held says so, and returns when stdin closes.
func held() error {
	fmt.Println("held")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// slowDisk makes 200 commits last longer than any one process was once waited for.
func slowDisk(op cas.Op) error {
	if op == cas.OpCommit {
		<-time.After(40 * time.Millisecond)
	}
	return nil
}

func appendEvents(ctx context.Context, s *cas.Store, run protocol.RunID, n int) error {
	j, err := s.Journal(ctx, run)
	if err != nil {
		return err
	}
	for i := 0; i != n; {
		payload := cas.Raw(fmt.Appendf(nil, "%d says %d", os.Getpid(), i))
		got, err := j.Append(ctx, castest.Now, []cas.Draft{
			{Step: "coder#1", Data: protocol.TextSaid{Content: protocol.NewText(fmt.Sprint(os.Getpid(), " ", i))}},
			{Step: "coder#1", Data: protocol.TextSaid{Content: protocol.NewText(strings.Repeat("long ", i%700))}},
		}, []cas.Block{payload})
		if errors.Is(err, protocol.ErrHeadMoved) {
			if _, err = j.Catchup(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		fmt.Println(got[1].Seq, got[1].CID)
		i++
	}
	return nil
}

// start runs a child; its lines come from out.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(args, "\n"), "GORACE=atexit_sleep_ms=0") // else each waits for a second
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, bufio.NewScanner(stdout)
}

// finish reads what a child still says and waits for it.
func finish(t *testing.T, cmd *exec.Cmd, out *bufio.Scanner) (lines []string) {
	t.Helper()
	for out.Scan() {
		lines = append(lines, out.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, strings.Join(lines[max(0, len(lines)-3):], "\n"))
	}
	return lines
}

func processes(t *testing.T, n, each int, run func(i int) string) {
	dir := filepath.Join(t.TempDir(), "store") // the processes make it, all at once
	var wg sync.WaitGroup
	for i := range n {
		cmd, _, out := start(t, "append", dir, run(i), strconv.Itoa(each))
		wg.Go(func() {
			if lines := finish(t, cmd, out); len(lines) != each {
				t.Errorf("process %d was told of %d commits: %v", i, len(lines), lines[max(0, len(lines)-2):])
			}
		})
	}
	wg.Wait()
	s := openStore(t, dir)
	defer s.Close()
	runs := map[string]int{}
	for i := range n {
		runs[run(i)] += 2 * each
	}
	for id, want := range runs {
		got, err := castest.Events(t.Context(), s, protocol.RunID(id), 0)
		if err != nil || len(got) != want {
			t.Errorf("run %s has %d events, want %d: %v", id, len(got), want, err)
		}
	}
}

func TestEightProcessesWriteOneRun(t *testing.T) {
	processes(t, 8, 25, func(int) string { return "r1" })
}

func TestSixtyFourProcessesAtOnce(t *testing.T) {
	processes(t, 64, 2, func(i int) string { return fmt.Sprint("r", i) })
}

func TestX01ReadersAnswerWhileAnotherProcessWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir)
	defer s.Close()
	cmd, _, out := start(t, "append", dir, "r1", "-1")
	var last protocol.Seq
	for n := 0; n < 100; {
		if !out.Scan() {
			t.Fatal("the writer ended")
		}
		seq, err := strconv.Atoi(strings.Fields(out.Text())[0])
		if err != nil {
			t.Fatal(out.Text())
		}
		got, err := castest.Events(t.Context(), s, "r1", last)
		if err != nil {
			t.Fatal(err)
		}
		last += protocol.Seq(len(got))
		if last < protocol.Seq(seq) {
			t.Fatalf("event %d was acknowledged, the reader sees %d", seq, last)
		}
		if _, err := s.Heads(t.Context(), "run/"); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
}

func TestKillInCommitsLosesNothingAcknowledged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	var last, acknowledged int
	var cid string
	for i := range rounds {
		cmd, _, out := start(t, "append", dir, "r1", "-1")
		for n := 0; n <= (i*7)%23 && out.Scan(); n++ {
			f := strings.Fields(out.Text())
			seq, err := strconv.Atoi(f[0])
			if err != nil {
				t.Fatal(out.Text())
			}
			last, cid = seq, f[1]
			acknowledged++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() { // acknowledged before the kill, only not read yet
			if f := strings.Fields(out.Text()); len(f) == 2 && len(f[1]) == len(cid) {
				if seq, err := strconv.Atoi(f[0]); err == nil {
					last, cid = seq, f[1]
				}
			}
		}
		_ = cmd.Wait() // killed

		s := openStore(t, dir)
		got, err := castest.Events(t.Context(), s, "r1", 0)
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if len(got) < last || got[last-1].CID.String() != cid {
			t.Fatalf("round %d: event %d %s was acknowledged, the store has %d events", i, last, cid, len(got))
		}
		for _, e := range got {
			d, err := cas.DecodeData[protocol.TextSaid](&e.Event)
			if err == nil && d.Content.Link.Defined() {
				_, err = protocol.ReadPayload(t.Context(), s, d.Content.Link)
			}
			if err != nil {
				t.Fatalf("round %d, event %d: %v", i, e.Seq, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if acknowledged == 0 {
		t.Error("nothing was ever acknowledged")
	}
}

// holder is another process that has the store open, and the way to let it go.
func holder(t *testing.T, how, dir string) (cmd *exec.Cmd, let func()) {
	t.Helper()
	cmd, in, out := start(t, how, dir)
	if !out.Scan() || out.Text() != "held" {
		t.Fatal("the holder said ", out.Text())
	}
	return cmd, func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		finish(t, cmd, out)
	}
}

func TestAStoppedHolderIsNamed(t *testing.T) {
	dir := made(t)
	s := openStore(t, dir)
	defer s.Close()
	cmd, let := holder(t, "hold", dir)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for stopped := false; !stopped; {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			t.Skip("needs /proc: ", err)
		}
		stopped = strings.Contains(string(b), ") T ")
	}
	cas.WaitForTest(s, 100*time.Millisecond)
	err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{cas.Raw([]byte("x"))}})
	cas.WaitForTest(s, patience)
	want := fmt.Sprintf("held by process %d (stopped)", cmd.Process.Pid)
	if !errors.Is(err, protocol.ErrBusy) || !strings.Contains(err.Error(), want) || !strings.Contains(protocol.HintOf(err), "kill -CONT") {
		t.Errorf("want busy, %q; have %v (%s)", want, err, protocol.HintOf(err))
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	let()
	if h, err := s.Head(t.Context(), "run/r1"); err != nil || h.Seq != 200 {
		t.Errorf("then: %+v, %v", h, err)
	}
}

// Of several readers the one that stays is named, not the one that came last.
func TestAReaderThatStaysIsNamed(t *testing.T) {
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("needs /proc/locks: ", err)
	}
	dir := made(t)
	s := openStore(t, dir)
	defer s.Close()
	cmd, let := holder(t, "read", dir)
	if h, err := s.Head(t.Context(), "run/r1"); err != nil || h.Seq != 200 {
		t.Errorf("readers share the store: %+v, %v", h, err)
	}
	cas.WaitForTest(s, 100*time.Millisecond)
	err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{cas.Raw([]byte("x"))}})
	if want := fmt.Sprintf("held by process %d;", cmd.Process.Pid); !errors.Is(err, protocol.ErrBusy) || !strings.Contains(err.Error(), want) {
		t.Errorf("want busy, %q; have %v", want, err)
	}
	let()
}

func TestAWriterWaitsForALongReader(t *testing.T) {
	dir := made(t)
	s := openStore(t, dir)
	defer s.Close()
	_, let := holder(t, "hold", dir)
	done := make(chan error)
	go func() {
		done <- s.Commit(context.Background(), cas.Batch{Blocks: []cas.Block{cas.Raw([]byte("late"))}})
	}()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := s.Head(ctx, "run/r1")
		left <- err
	}()
	cancel() // who leaves is not kept
	if err := <-left; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Errorf("committed while another process had the store: %v", err)
	default:
	}
	let()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A follower that has waited for long hears of a commit of another process, and so does each of
// several, in whatever order they come.
func TestFollowersHearOfCommitsOfAnotherProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir)
	defer s.Close()
	for round := range 20 {
		since := must(s.Changes(t.Context()))(t)
		var followers sync.WaitGroup
		for range 3 {
			followers.Go(func() {
				if n, err := s.AwaitChange(t.Context(), since); err != nil || n == since {
					t.Errorf("round %d: %d after %d, %v", round, n, since, err)
				}
			})
		}
		cmd, _, out := start(t, "append", dir, "r1", "1")
		finish(t, cmd, out)
		followers.Wait()
	}
}
