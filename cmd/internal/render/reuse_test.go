package render

import (
	"testing"

	"wf/api"
	"wf/protocol"
)

func TestM02HowMuchOfARunWasPerformed(t *testing.T) {
	runs := []protocol.RunID{"A", "B", "C", "D"}
	for _, c := range []struct {
		status            protocol.RunStatus
		performed, reused int
		from, total       int
		want              string
	}{
		{protocol.Done, 0, 1, 1, 0, "nothing was performed: the one step was reused from run A"},
		{protocol.Done, 0, 4, 1, 0, "nothing was performed: all 4 steps were reused from run A"},
		{protocol.Done, 0, 4, 3, 0, "nothing was performed: all 4 steps were reused from the runs A, B, C"},
		{protocol.Done, 0, 4, 4, 0, "nothing was performed: all 4 steps were reused from 4 runs"},
		{protocol.Done, 0, 2000, 2, 2000, "nothing was performed: all 2000 steps were reused from earlier runs"},
		{protocol.Failed, 1, 1, 1, 0, "1 step was performed, 1 was reused from run A"},
		{protocol.Done, 4, 8, 1, 0, "4 steps were performed, 8 were reused from run A"},
		{protocol.Waiting, 0, 1, 1, 0, "so far: 1 step reused from run A, 0 performed"},
	} {
		v := &api.Run{Status: c.status, Total: c.total, Reuse: &api.Reuses{Performed: c.performed, Reused: c.reused, From: runs[:c.from]}}
		if got := Reused(v); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
