package words

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/protocol"
)

// A process of these tests writes to an index until its standard input ends, or it is killed, and prints a line each time.
const processOf = "WF_TEST_WORDS_STORE"

// TestTheOtherProcess drops what is indexed of some runs, and indexes it again.
func TestTheOtherProcess(t *testing.T) {
	if os.Getenv(processOf) == "" {
		t.Skip("it is a part of other tests, which start it")
	}
	p := newPlace(t, os.Getenv(processOf))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		}
	}()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		p.again()
		p.catchUp()
		if err := p.x.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		var some []string
		for u := range p.x.at.all() {
			if rand.IntN(5) == 0 {
				some = append(some, u.id)
			}
		}
		if err := p.x.commit(t.Context(), t.Context(), nil, some); err != nil {
			t.Fatal(err)
		}
		p.x.give()
		p.catchUp()
		p.find("speak")
		fmt.Println("wrote", n)
	}
}

// process is another process at a store, which has written once.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	end   func() error
}

func (p *place) process() *process {
	p.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestTheOtherProcess$")
	cmd.Env = append(os.Environ(), processOf+"="+p.s.Dir())
	cmd.Stderr = p.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	x := &process{cmd: cmd, lines: bufio.NewScanner(out)}
	x.end = func() error {
		if err := in.Close(); err != nil {
			return err
		}
		for x.lines.Scan() {
			if strings.Contains(x.lines.Text(), "FAIL") {
				return fmt.Errorf("it says %s", x.lines.Text())
			}
		}
		return cmd.Wait()
	}
	x.await(p)
	return x
}

// await returns when it has written once more.
func (x *process) await(t testing.TB) {
	t.Helper()
	for x.lines.Scan() {
		if strings.HasPrefix(x.lines.Text(), "wrote") {
			return
		}
		t.Log(x.lines.Text())
	}
	t.Fatal("it has ended", x.lines.Err())
}

// A writer that is killed anywhere leaves an index that is whole, or is made anew, and no file that nothing knows.
func TestAWriterIsKilled(t *testing.T) {
	p := newPlace(t, t.TempDir())
	var runs []protocol.RunID
	for i := range 30 {
		runs = append(runs, p.begin(talk, fmt.Sprint("topic", i)))
	}
	for n := range 8 {
		x := p.process()
		for range n % 3 {
			x.await(t)
		}
		if err := x.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for x.lines.Scan() { // it is in the middle of something
		}
		_ = x.cmd.Wait() // killed
		p.again()
		p.catchUp()
		p.want("speak", runs...)
		p.want("topic7", runs[7])
		run := p.begin(talk, "another")
		runs = append(runs, run)
		p.catchUp()
		p.want("speak", runs...)
		names, err := os.ReadDir(p.folder())
		if err != nil {
			t.Fatal(err)
		}
		known := []string{lockName, manifestName}
		for _, s := range p.x.at.segs {
			known = append(known, s.name)
		}
		for _, x := range names {
			if !slices.Contains(known, x.Name()) {
				t.Errorf("%s is left", filepath.Join(p.folder(), x.Name()))
			}
		}
	}
}

// Several processes write at once, and each finds all that is there.
func TestProcessesWriteAtOnce(t *testing.T) {
	p := newPlace(t, t.TempDir())
	var runs []protocol.RunID
	runs = append(runs, p.begin(talk, "topic0"))
	others := []*process{p.process(), p.process()}
	for i := 1; i <= 12; i++ {
		runs = append(runs, p.begin(talk, fmt.Sprint("topic", i)))
		p.catchUp()
		p.find("speak")
		others[i%2].await(t)
	}
	for _, x := range others {
		if err := x.end(); err != nil {
			t.Error(err)
		}
	}
	p.catchUp()
	p.want("speak", runs...)
	for i, run := range runs {
		p.want(fmt.Sprintf("topic%d*", i), slices.DeleteFunc(slices.Clone(runs), func(r protocol.RunID) bool { return r != run && !(i == 1 && slices.Index(runs, r) >= 10) })...)
	}
	if n := p.behind(); n != 0 {
		t.Errorf("%d runs are behind", n)
	}
}
