package lists_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/hub/lists"
	"wf/protocol"
)

// told is a client with what it was told, and when.
type told struct {
	frames chan protocol.Frame
	gate   chan bool // holds one while the client takes nothing
	leave  func() error
}

func (c *told) next() protocol.Frame {
	f := <-c.frames
	f.Type, f.ID = "", ""
	return f
}

func join(t *testing.T, b *lists.Board, names ...protocol.List) *told {
	ctx, cancel := context.WithCancel(t.Context())
	c := &told{frames: make(chan protocol.Frame, 100), gate: make(chan bool, 1)}
	ended := make(chan error, 1)
	go func() {
		ended <- b.Serve(ctx, protocol.Request{ID: "7", Lists: names}, func(f *protocol.Frame) error {
			c.gate <- true
			defer func() { <-c.gate }()
			c.frames <- *f
			return nil
		})
	}()
	c.leave = func() error {
		cancel()
		return <-ended
	}
	return c
}

// watching has everything watched that is wanted, whenever that is another.
func watching(ctx context.Context, b *lists.Board) {
	for ctx.Err() == nil {
		wanted, other := b.Wanted()
		for _, list := range both { // in the order in which they are sent
			if watched, is := wanted[list]; is && !watched {
				b.All(list)
			}
		}
		select {
		case <-other:
		case <-ctx.Done():
		}
	}
}

func all(list protocol.List) protocol.Frame { return protocol.Frame{List: list, All: true} }

func some(list protocol.List, runs ...protocol.RunID) protocol.Frame {
	return protocol.Frame{List: list, Runs: runs}
}

var both = []protocol.List{protocol.ListRuns, protocol.ListTables}

var sameLinks = cmp.Comparer(func(a, b protocol.Link) bool { return a == b })

func expect(t *testing.T, c *told, want ...protocol.Frame) {
	t.Helper()
	for _, w := range want {
		if d := cmp.Diff(w, c.next(), sameLinks); d != "" {
			t.Fatal(d)
		}
	}
}

// spaced returns when Every has passed since the call: a client that gets two frames about one list gets them that far apart.
func spaced(t *testing.T, b *lists.Board, other *told) {
	t.Helper()
	for range 2 {
		b.Moved(protocol.ListTables, "T")
		expect(t, other, some(protocol.ListTables, "T"))
	}
}

func TestChangesBetweenTwoFramesAreOneFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lists.Board{Of: both, Source: watching}
		c := join(t, b, protocol.ListRuns, "of tomorrow")
		expect(t, c, all(protocol.ListRuns))
		other := join(t, b, protocol.ListTables)
		expect(t, other, all(protocol.ListTables))
		spaced(t, b, other) // c does not ask for its list
		at := time.Now()
		b.Moved(protocol.ListRuns, "A")
		expect(t, c, some(protocol.ListRuns, "A"))
		if waited := time.Since(at); waited != 0 {
			t.Errorf("the first change waited for %v", waited)
		}
		for _, run := range []protocol.RunID{"C", "B", "C"} {
			b.Moved(protocol.ListRuns, run)
		}
		expect(t, c, some(protocol.ListRuns, "B", "C"))
		if waited := time.Since(at); waited != lists.Every {
			t.Errorf("the next came after %v", waited)
		}
		if err := c.leave(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		other.leave()
		b.Close()
	})
}

// Below, at and beyond what a frame names.
func TestManyRunsAreEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lists.Board{Of: both, Source: watching}
		c, other := join(t, b, protocol.ListRuns), join(t, b, protocol.ListTables)
		expect(t, c, all(protocol.ListRuns))
		expect(t, other, all(protocol.ListTables))
		for n := protocol.MaxListed - 1; n <= protocol.MaxListed+1; n++ {
			spaced(t, b, other)
			synctest.Wait()
			c.gate <- true
			b.Moved(protocol.ListRuns, "first") // is on its way, and stays there
			synctest.Wait()
			var runs []protocol.RunID
			for i := range n {
				runs = append(runs, protocol.RunID(fmt.Sprintf("%04d", i)))
			}
			for part := range slices.Chunk(runs, 100) {
				b.Moved(protocol.ListRuns, part...)
			}
			<-c.gate
			want := some(protocol.ListRuns, runs...)
			if n > protocol.MaxListed {
				want = all(protocol.ListRuns)
			}
			expect(t, c, some(protocol.ListRuns, "first"), want)
		}
		c.leave()
		other.leave()
		b.Close()
	})
}

// A client that takes nothing keeps no other from being told, and hears of all of it in the end in one frame a list.
func TestAClientThatStallsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lists.Board{Of: both, Source: watching}
		slow, quick := join(t, b, both...), join(t, b, both...)
		for _, c := range []*told{slow, quick} {
			expect(t, c, all(protocol.ListRuns), all(protocol.ListTables))
		}
		slow.gate <- true
		for i := range 1000 {
			b.Moved(protocol.ListRuns, protocol.RunID(fmt.Sprint(i)))
			b.All(protocol.ListTables)
			expect(t, quick, some(protocol.ListRuns, protocol.RunID(fmt.Sprint(i))), all(protocol.ListTables))
			synctest.Wait() // slow has its first frame
		}
		<-slow.gate
		expect(t, slow, some(protocol.ListRuns, "0"), all(protocol.ListTables), all(protocol.ListRuns))
		time.AfterFunc(time.Minute, func() { b.Moved(protocol.ListRuns, "a minute later") })
		expect(t, slow, some(protocol.ListRuns, "a minute later")) // and no frame before it
		slow.leave()
		quick.leave()
		b.Close()
	})
}

// A client that takes a frame at a time, each later than the next one is due, is told of each list.
func TestASlowClientIsToldOfEachList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lists.Board{Of: both, Source: watching}
		ctx, cancel := context.WithCancel(t.Context())
		told, ended := map[protocol.List]int{}, make(chan error, 1)
		go func() {
			ended <- b.Serve(ctx, protocol.Request{Lists: both}, func(f *protocol.Frame) error {
				<-time.After(2 * lists.Every)
				told[f.List]++
				for _, list := range both { // they change all the time
					b.Moved(list, "A")
				}
				if told[f.List] == 10 {
					cancel()
				}
				return nil
			})
		}()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, list := range both {
			if told[list] < 9 {
				t.Errorf("frames about %s: %v", list, told)
			}
		}
		b.Close()
	})
}

// client is one of many.
type client struct {
	*told
	of     []protocol.List
	owed   map[protocol.List]map[protocol.RunID]bool
	stalls bool
}

func (c *client) goOn() {
	if c.stalls {
		<-c.gate
		c.stalls = false
	}
}

// A hundred clients that want different lists, of which some take nothing for a while, come and go: each is told of what moved after it was told of everything.
func TestEveryClientIsToldOfEveryMove(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		dice := rand.New(rand.NewPCG(seed, 1))
		b := &lists.Board{Of: both, Source: watching}
		come := func() *client {
			c := &client{of: [][]protocol.List{both, both[:1], both[1:]}[dice.IntN(3)], owed: map[protocol.List]map[protocol.RunID]bool{}}
			c.told = join(t, b, c.of...)
			for range c.of {
				f := c.next()
				if !f.All {
					t.Fatalf("the first frame: %+v", f)
				}
				c.owed[f.List] = map[protocol.RunID]bool{}
			}
			return c
		}
		stays := join(t, b, both...) // so that the lists stay watched
		go func() {
			for range stays.frames {
			}
		}()
		var clients []*client
		for range 100 {
			clients = append(clients, come())
		}
		take := func(c *client, f protocol.Frame) {
			if f.All {
				clear(c.owed[f.List])
			}
			for _, run := range f.Runs {
				delete(c.owed[f.List], run)
			}
			if len(f.Runs) > protocol.MaxListed {
				t.Errorf("a frame names %d runs", len(f.Runs))
			}
		}
		for range 300 {
			list := both[dice.IntN(2)]
			var runs []protocol.RunID
			for range []int{1, 1, 1, 100, protocol.MaxListed, protocol.MaxListed + 1}[dice.IntN(6)] {
				runs = append(runs, protocol.RunID(fmt.Sprint(dice.IntN(1000))))
			}
			for _, c := range clients {
				for _, run := range runs {
					if c.owed[list] != nil {
						c.owed[list][run] = true
					}
				}
			}
			b.Moved(list, runs...)
			<-time.After(time.Duration(dice.IntN(150)) * time.Millisecond)
			for i, c := range clients {
				switch n := dice.IntN(40); {
				case n == 0 && !c.stalls: // takes nothing for a while
					c.gate <- true
					c.stalls = true
				case n == 1:
					c.goOn()
				case n == 2 && dice.IntN(20) == 0:
					c.goOn()
					c.leave()
					clients[i] = come()
					continue
				}
				for len(c.frames) > 0 {
					take(c, c.next())
				}
			}
		}
		for _, c := range clients {
			c.goOn()
		}
		<-time.After(time.Minute)
		for i, c := range clients {
			for len(c.frames) > 0 {
				take(c, c.next())
			}
			for list, owed := range c.owed {
				if len(owed) > 0 {
					t.Errorf("client %d was not told of %d runs of %s", i, len(owed), list)
				}
			}
			c.leave()
		}
		stays.leave()
		close(stays.frames)
		b.Close()
	})
}

func TestTheSourceRunsWhileAClientAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, began int
		end := make(chan bool) // takes one for each source that may end
		b := &lists.Board{Of: both, Source: func(ctx context.Context, b *lists.Board) {
			if running++; running > 1 {
				t.Error("two sources at once")
			}
			began++
			watching(ctx, b)
			<-end
			b.All(both...)
			running--
		}}
		one := join(t, b, protocol.ListRuns)
		expect(t, one, all(protocol.ListRuns))
		two := join(t, b, protocol.ListRuns)
		expect(t, two, all(protocol.ListRuns)) // it is watched already
		one.leave()
		two.leave()
		three := join(t, b, protocol.ListTables) // while the source ends
		synctest.Wait()
		if began != 1 || running != 1 {
			t.Errorf("while the first source ends: %d sources began, %d run", began, running)
		}
		end <- true
		expect(t, three, all(protocol.ListTables))
		time.AfterFunc(time.Minute, func() { b.Moved(protocol.ListTables, "a minute later") })
		f := three.next()
		for f.All { // of the source that ended, and of the one that began
			f = three.next()
		}
		if d := cmp.Diff(some(protocol.ListTables, "a minute later"), f, sameLinks); d != "" {
			t.Error(d)
		}
		if began != 2 || running != 1 {
			t.Errorf("%d sources began, %d run", began, running)
		}
		three.leave()
		time.AfterFunc(time.Second, func() { end <- true })
		b.Close()
		if running != 0 {
			t.Error("the source runs without a client")
		}
	})
}

// A list that was not asked for meanwhile is not taken for watched.
func TestAListIsWatchedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lists.Board{Of: both, Source: watching}
		keeps := join(t, b, protocol.ListTables)
		expect(t, keeps, all(protocol.ListTables))
		join(t, b, protocol.ListRuns).leave()
		b.Moved(protocol.ListRuns, "A")
		if wanted, _ := b.Wanted(); len(wanted) != 1 {
			t.Errorf("wanted: %v", wanted)
		}
		again := join(t, b, protocol.ListRuns)
		expect(t, again, all(protocol.ListRuns))
		again.leave()
		keeps.leave()
		b.Close()
	})
}

func TestUnknownListsAreRefused(t *testing.T) {
	b := &lists.Board{Of: both, Source: watching}
	err := b.Serve(t.Context(), protocol.Request{Lists: []protocol.List{protocol.ListQueue}}, func(*protocol.Frame) error { return nil })
	if !errors.Is(err, protocol.ErrBadRequest) {
		t.Error(err)
	}
	b.Close()
}
