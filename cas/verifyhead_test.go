package cas

import (
	"bytes"
	"testing"

	"wf/protocol"
)

func TestAGivenHeadIsLookedForInWhateverIsVerified(t *testing.T) {
	dir, j := closedSample(t, 2)
	head, _ := j.Head()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sampleRun(t, s, "two", 2)
	archive, _ := exported(t, s, "one")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := Raw([]byte("of no run")).Link
	for _, c := range []struct {
		name string
		o    VerifyOptions
		want []string
	}{
		{"in the run", VerifyOptions{Run: "one", Head: head}, nil},
		{"in another run", VerifyOptions{Run: "two", Head: head}, []string{"rewritten"}},
		{"in one of the runs", VerifyOptions{Head: head}, nil},
		{"in none of the runs", VerifyOptions{Head: other}, []string{"head_missing"}},
	} {
		t.Run(c.name, func(t *testing.T) { wantKinds(t, verifyClosed(t, dir, c.o), c.want...) })
	}
	for _, c := range []struct {
		name string
		head protocol.Link
		want []string
	}{{"the root of an archive", head, nil}, {"not in the archive", other, []string{"rolled_back"}}} {
		t.Run(c.name, func(t *testing.T) {
			r, err := VerifyCAR(t.Context(), bytes.NewReader(archive), VerifyOptions{Head: c.head})
			if err != nil {
				t.Fatal(err)
			}
			wantKinds(t, r, c.want...)
		})
	}
}
