package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"wf/api"
	"wf/hub/lists"
	"wf/protocol"
	"wf/store"
)

// listSource finds out which lists of a store change, for all clients that ask for it:
//
//	commit ─► heads that moved ─► runs, deletions, notifications
//	2 s, commit ─► tables (whether a process is at work on one is no commit)
//	5 s ─► workflows, which lie in files
//
// A store names the heads that moved. One in a directory also tells at once that something did; a database is asked all the time.
type listSource struct {
	s       store.Store
	service api.Service
	log     *slog.Logger

	moved func(ctx context.Context) (names []string, known bool, err error)
	asks  bool // the store tells of other processes only when it is asked
	seen  map[protocol.List]sight
}

// sight is a list as it was seen.
type sight struct {
	sum [sha256.Size]byte
	at  time.Time
}

// Of these lists something else than a commit changes what they show: they are looked at so often.
var lookAgain = map[protocol.List]time.Duration{protocol.ListTables: 2 * time.Second, protocol.ListWorkflows: lookForWorkflows}

const (
	listPart = 10                     // one part in so many of the time is spent with looking at most
	settles  = 20 * time.Millisecond  // for so long after its first sign a commit is waited for
	askHeads = 150 * time.Millisecond // how often a database is asked which heads moved
)

func newLists(s store.Store, service api.Service, log *slog.Logger) *lists.Board {
	return &lists.Board{
		Of: []protocol.List{protocol.ListRuns, protocol.ListDeletions, protocol.ListNotifications, protocol.ListTables, protocol.ListWorkflows},
		Source: func(ctx context.Context, b *lists.Board) {
			l := &listSource{s: s, service: service, log: log, moved: s.Moved(), asks: store.IsDatabase(s.Name()), seen: map[protocol.List]sight{}}
			l.follow(ctx, b)
		},
	}
}

// follow looks whenever something was committed, another list is wanted, or it is time.
func (l *listSource) follow(ctx context.Context, b *lists.Board) {
	var last uint64 // that was looked at
	told := false
	for first := true; ctx.Err() == nil; {
		wanted, other := b.Wanted()
		began := time.Now()
		now, err := l.s.Changes(ctx) // first: what is committed from here on is seen by the next look
		if err == nil {
			err = l.look(ctx, b, wanted, first || now != last)
		}
		pause := gracePeriod
		switch {
		case err == nil:
			last, told = now, false
			pause = max(lists.Every, listPart*time.Since(began))
		case ctx.Err() == nil && !told:
			told = true
			l.log.Error("clients get no changes of lists", "why", describe(err), "again in", gracePeriod)
		}
		pauses, stop := context.WithTimeout(ctx, pause)
		if first = err != nil; !first {
			l.await(ctx, wanted, last, other)
		}
		<-pauses.Done()
		stop()
	}
}

// await returns when there may be something to see.
func (l *listSource) await(ctx context.Context, wanted map[protocol.List]bool, since uint64, other <-chan struct{}) {
	patience := time.Hour
	if l.asks {
		patience = askHeads
	}
	for list := range wanted {
		if again := lookAgain[list]; again > 0 {
			patience = min(patience, again)
		}
	}
	waits, stop := context.WithTimeout(ctx, patience)
	defer stop()
	go func() {
		select {
		case <-other:
			stop()
		case <-waits.Done():
		}
	}()
	if _, err := l.s.AwaitChange(waits, since); err == nil && !l.asks {
		<-time.After(settles)
	} // an error shows with the next look
}

// look tells what has changed of the lists that are wanted; committed reports whether anything may have been committed since the last look.
func (l *listSource) look(ctx context.Context, b *lists.Board, wanted map[protocol.List]bool, committed bool) error {
	if err := l.lookAtHeads(ctx, b, wanted, committed); err != nil {
		return err
	}
	for list, again := range lookAgain {
		watched, asked := wanted[list]
		if !asked || watched && time.Since(l.seen[list].at) < again && !(committed && list == protocol.ListTables) {
			continue
		}
		now, err := l.see(ctx, list)
		if err != nil {
			return err
		}
		if !watched || now.sum != l.seen[list].sum {
			b.All(list)
		}
		l.seen[list] = now
	}
	return nil
}

// see reads a list, so that it can be compared. Of a list that cannot be read the error is compared.
func (l *listSource) see(ctx context.Context, list protocol.List) (sight, error) {
	at := time.Now()
	var items any
	var err error
	if list == protocol.ListTables {
		items, err = l.service.Tables(ctx, api.Part{})
	} else {
		items, err = l.service.Workflows(ctx)
	}
	if ctx.Err() != nil {
		return sight{}, ctx.Err()
	}
	if err != nil {
		items = err.Error()
	}
	text, err := json.Marshal(items)
	return sight{sha256.Sum256(text), at}, err
}

// prefixes are those of the heads of which lists are made.
var prefixes = map[protocol.List]string{protocol.ListRuns: protocol.RunHead(""), protocol.ListDeletions: protocol.DeletedHead(""), protocol.ListNotifications: protocol.NotifyHead("")}

// lookAtHeads tells what has changed of the lists that are made of heads.
func (l *listSource) lookAtHeads(ctx context.Context, b *lists.Board, wanted map[protocol.List]bool, committed bool) error {
	due := l.asks || committed
	for list := range prefixes {
		watched, asked := wanted[list]
		due = due || asked && !watched
	}
	if !due {
		return nil
	}
	names, known, err := l.moved(ctx) // of all lists: what is named now is not named again
	if err != nil {
		return err
	}
	for list := range prefixes {
		if watched, asked := wanted[list]; asked {
			l.tell(b, list, names, watched && known)
		}
	}
	return nil
}

// tell tells of the heads of a list among the names; of what is not known, that anything may be another.
func (l *listSource) tell(b *lists.Board, list protocol.List, names []string, known bool) {
	if !known {
		b.All(list)
		return
	}
	var runs []protocol.RunID
	for _, name := range names {
		id, of := strings.CutPrefix(name, prefixes[list])
		switch {
		case !of:
		case list == protocol.ListNotifications: // the name of a sink
			b.All(list)
			return
		default:
			runs = append(runs, protocol.RunID(id))
		}
	}
	b.Moved(list, runs...)
}
