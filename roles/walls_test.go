package roles

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// refusing are walls that see each command meet one.
type refusing struct{ at *Command }

func (refusing) Tier(Command) protocol.SandboxTier {
	return protocol.SandboxTier{Tier: "a test", ABI: 1}
}

func (r refusing) Run(_ context.Context, c Command) (int, error) {
	*r.at = c
	c.Hit("a.example.com:443 was refused")
	c.Hit("b.example.com:443 was refused")
	return 0, nil
}

func (refusing) Met(Command, string) string { return "never asked" }

// What the walls saw a command meet is journaled, also behind a command that did well.
func TestWhatACommandMetIsJournaled(t *testing.T) {
	turn := command(t, "true")
	turn.Confined, turn.Role.NetworkHosts = true, []string{"c.example.com:443"}
	var at Command
	var tiers []protocol.SandboxTier
	_, err := (&Run{Walls: refusing{&at}}).Perform(t.Context(), turn, func(_ context.Context, data ...protocol.Data) error {
		for _, d := range data {
			if tier, ok := d.(protocol.SandboxTier); ok {
				tiers = append(tiers, tier)
			}
		}
		return nil
	})
	want := []protocol.SandboxTier{{Tier: "a test", ABI: 1}, {Tier: "a test", ABI: 1, Met: "a.example.com:443 was refused; b.example.com:443 was refused"}}
	if d := cmp.Diff(want, tiers); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if d := cmp.Diff([]string{"c.example.com:443"}, at.Hosts); d != "" || at.Network {
		t.Errorf("it reaches all: %v, %s", at.Network, d)
	}
}

// What a command left is journaled, without secrets, however the command ended: here by itself, and by the end
// of its time.
func TestWhatACommandLeftIsJournaled(t *testing.T) {
	for line, ends := range map[string]bool{"mkdir -p sub/.git 'the-secret/.wf'": true, "mkdir -p sub/.git the-secret/.wf && touch up && sleep 1000": false} {
		turn := command(t, line)
		turn.Confined, turn.Secrets = true, []string{"TOKEN"}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if !ends {
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(filepath.Join(turn.Workspace, "up")); err == nil {
						stop()
					}
				}
			}()
		}
		var got []*protocol.Appeared
		_, err := (&Run{Walls: Bare{"container"}, Environ: append(os.Environ(), "TOKEN=the-secret"), Grace: time.Millisecond}).Perform(ctx, turn, func(ctx context.Context, data ...protocol.Data) error {
			for _, d := range data {
				if tier, ok := d.(protocol.SandboxTier); ok && tier.Appeared != nil {
					got = append(got, tier.Appeared)
				}
			}
			return ctx.Err()
		})
		want := []*protocol.Appeared{{Found: []protocol.Found{{Kind: protocol.FoundRepository, Path: "sub/"}, {Kind: protocol.FoundStore, Path: "[secret:TOKEN]/"}}}}
		if d := cmp.Diff(want, got); d != "" || (err == nil) != ends {
			t.Errorf("%s: %v (-want +got):\n%s", line, err, d)
		}
	}
}
