package roles

import (
	"context"
	"testing"

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
