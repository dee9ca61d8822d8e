package prompt

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"wf/agentkit/task"
	"wf/protocol"
)

// taskHistory is task n of a role: a person says something before each.
func taskHistory(t testing.TB, n int) protocol.History {
	t.Helper()
	offered, err := protocol.CanonicalJSON(task.Tools(nil))
	if err != nil {
		t.Fatal(err)
	}
	h := protocol.History{Role: "clerk", System: "You keep notes.", Tools: string(offered), Inputs: protocol.JSON(`{"team":"blue"}`),
		Goal: fmt.Sprintf("Goal %d", n), Summaries: protocol.DefaultTaskSummaries}
	visit := func(k int) protocol.Past {
		v := step(fmt.Sprintf("clerk#%d", k), fmt.Sprintf("Response %d", k), fmt.Sprintf("desk#%d", k))
		v.EdgePrompt, v.Mentions = fmt.Sprintf("Message %d", k), []string{"output.text"}
		data, err := task.Data(protocol.TaskData{Goal: fmt.Sprintf("Goal %d", k), Status: protocol.TaskCompleted, State: "State",
			Summary: fmt.Sprintf("Summary %d of what was done.", k), Shared: protocol.JSON(fmt.Sprintf(`{"last":%d}`, k))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v.Data = data
		if k > 1 {
			v.Resumes = link(fmt.Sprintf("clerk#%d", k-1))
		}
		return v
	}
	before := "START"
	for k := 1; k <= n; k++ {
		desk := step(fmt.Sprintf("desk#%d", k), fmt.Sprintf("Message %d", k), before)
		h.Past = append(h.Past, desk)
		if before = fmt.Sprintf("clerk#%d", k); k < n {
			h.Past = append(h.Past, visit(k))
		}
	}
	h.Visit = visit(n)
	h.Visit.Inject = "Date: Monday, 2 January 2006"
	return h
}

// The first requests of two tasks, as each format renders them for ever.
func TestTasksMatchTheirGoldenFile(t *testing.T) {
	for version := range formats {
		tasksMatch(t, version)
	}
}

func tasksMatch(t *testing.T, version int) {
	var got []byte
	for _, n := range []int{1, 5} {
		h := taskHistory(t, n)
		h.Format = version
		messages, err := BuildMessages(h)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, Bytes(h.Tools, messages)...)
	}
	pinned(t, version, "-task", got)
}

func TestR03TheThousandthTaskBeginsAsSmallAsTheFourth(t *testing.T) {
	size := func(n int) int {
		h := taskHistory(t, n)
		messages, err := BuildMessages(h)
		if err != nil {
			t.Fatal(err)
		}
		if all := messages[1].Content; strings.Contains(all, "Response") || !strings.Contains(all, fmt.Sprintf("Summary %d", n-3)) {
			t.Errorf("task %d begins with %s", n, all)
		}
		return len(Bytes(h.Tools, messages))
	}
	if fourth, last := size(4), size(1_000); float64(last) > 1.1*float64(fourth) {
		t.Errorf("%d bytes, of the fourth %d", last, fourth)
	}
}

// Two tasks of a role share their tools and system message, which a provider then reads from
// its cache.
func TestAllTasksOfARoleBeginAlike(t *testing.T) {
	prompt := func(n int) []byte {
		h := taskHistory(t, n)
		messages, err := BuildMessages(h)
		if err != nil {
			t.Fatal(err)
		}
		return Bytes(h.Tools, messages)
	}
	lasting := Lasting(prompt(2))
	if !bytes.HasSuffix(lasting, []byte("}\n")) || bytes.Count(lasting, []byte("\n")) != 2 || !bytes.HasPrefix(prompt(7), lasting) {
		t.Errorf("lasting is %s", lasting)
	}
}

// BenchmarkTaskMessages builds the first request of a late task; the bare variant is that of the
// fourth.
func BenchmarkTaskMessages(b *testing.B) {
	for _, n := range []int{4, 1_000} {
		h := taskHistory(b, n)
		b.Run(fmt.Sprintf("task %d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := BuildMessages(h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
