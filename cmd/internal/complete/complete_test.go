package complete

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestTheUsageLineSaysWhatCompletes(t *testing.T) {
	for _, c := range []struct {
		use  string
		n    int
		want string
	}{
		{"ls", 0, ""},
		{"cancel RUN", 0, "RUN"},
		{"cancel RUN", 1, ""},
		{"answer RUN|RUN:STEP [TEXT]", 0, "RUN RUN:STEP"},
		{"answer RUN|RUN:STEP [TEXT]", 1, "TEXT"},
		{"show [RUN[:STEP] | CID]", 0, "RUN[:STEP] CID"},
		{"diff RUN RUN", 1, "RUN"},
		{"validate FILE...", 7, "FILE"},
		{"tag ID [TAG...]", 5, "TAG"},
	} {
		if got := strings.Join(kindsOf(&cobra.Command{Use: c.use}, c.n), " "); got != c.want {
			t.Errorf("argument %d of %q: %q, want %q", c.n, c.use, got, c.want)
		}
	}
}
