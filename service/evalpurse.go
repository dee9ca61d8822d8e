package service

import (
	"context"
	"math"
	"sync"
)

// purse is what the runs of an evaluation may cost together, in micro-dollars. Before it starts, a run reserves what it may
// cost; what it did not use goes back.
type purse struct {
	most int64 // 0 is no bound
	side int   // runs at the same time

	mu      sync.Mutex
	spent   int64
	held    int64
	holders int
	changed chan struct{} // closed when something went back
}

func newPurse(most int64, side int) *purse {
	return &purse{most: most, side: side, changed: make(chan struct{})}
}

// reserve takes up to want, which is 0 where a run has no bound of its own: then its share, so that the others can begin
// beside it. It waits while all that is left is reserved by others. 0 is: nothing is left.
func (p *purse) reserve(ctx context.Context, want int64) (int64, error) {
	for {
		p.mu.Lock()
		left := p.most - p.spent - p.held
		if left > 0 {
			share := left / int64(max(p.side-p.holders, 1))
			got := max(share, 1)
			if want > 0 {
				got = min(want, left)
			}
			p.held, p.holders = p.held+got, p.holders+1
			p.mu.Unlock()
			return got, nil
		}
		others, changed := p.holders, p.changed
		p.mu.Unlock()
		if others == 0 {
			return 0, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// settle gives back what was reserved, less what was used.
func (p *purse) settle(reserved, used int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.holders, p.spent = p.held-reserved, p.holders-1, p.spent+used
	close(p.changed)
	p.changed = make(chan struct{})
}

// spend counts what an earlier call spent; nil is not known.
func (p *purse) spend(dollars *float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += micros(dollars)
}

// spendMore counts what an earlier call spent beyond what is counted of it.
func (p *purse) spendMore(dollars, counted *float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += max(micros(dollars)-micros(counted), 0)
}

func micros(dollars *float64) int64 {
	if dollars == nil {
		return 0
	}
	return int64(math.Round(*dollars * 1e6))
}
