package ratelimit

import (
	"context"
	"testing"
)

func take(a *Account) error {
	_, err := a.Ask(context.Background(), 100)
	return err
}

// What a call without limits pays.
func BenchmarkNoLimit(b *testing.B) {
	var a *Account
	b.ReportAllocs()
	for b.Loop() {
		if err := take(a); err != nil {
			b.Fatal(err)
		}
	}
}

// A grant and its end, in a window that many others are in.
func BenchmarkGrant(b *testing.B) {
	for name, before := range map[string]int{"empty": 0, "window of 60": 60, "window of 60000": 60_000} {
		b.Run(name, func(b *testing.B) {
			l := newLedger(b.TempDir() + "/account")
			a := &Account{Provider: "p", Limits: Limits{Requests: 1 << 40, Tokens: 1 << 60, InFlight: 1 << 30}, ledger: l}
			err := l.change(func(s *state, now int64, _ int) bool {
				for i := range before {
					s.Last++
					s.count(send{ID: s.Last, At: now - s.window/2 + int64(i)*s.window/2/int64(before), N: 1, Tokens: 100})
				}
				return true
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				g, err := a.Ask(b.Context(), 100)
				if err != nil {
					b.Fatal(err)
				}
				g.Done(Result{Sent: true, Used: 90})
			}
		})
	}
}
