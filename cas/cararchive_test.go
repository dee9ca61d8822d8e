package cas_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// An archive in parts is that of Export, and one without what the store has brings the run all the same, be it without a single block of it. What is
// nowhere is missed.
func TestAnArchiveInParts(t *testing.T) {
	from, to, whole := castest.Directory.Open(t), castest.Directory.Open(t), new(bytes.Buffer)
	castest.Sample(t, from, "run", 50, nil)
	if _, err := cas.Export(t.Context(), whole, from, cas.ExportOptions{}, "run"); err != nil {
		t.Fatal(err)
	}
	var record protocol.Archive
	var all []protocol.Link
	err := cas.Contents(t.Context(), from, cas.ExportOptions{}, "run", nil,
		func(a protocol.Archive) error { record = a; return nil },
		func(some []protocol.Link) error { all = append(all, some...); return nil })
	if err != nil {
		t.Fatal(err)
	}
	joined := func(some []protocol.Link, size int) *bytes.Buffer {
		t.Helper()
		out, chunks := new(bytes.Buffer), slices.Collect(slices.Chunk(some, size))
		_, err := cas.JoinParts(out, record, func() ([]protocol.Link, io.ReadCloser, error) {
			if len(chunks) == 0 {
				return nil, nil, io.EOF
			}
			part, links := new(bytes.Buffer), chunks[0]
			err := cas.WriteParts(t.Context(), part, from, links)
			chunks = chunks[1:]
			return links, io.NopCloser(part), err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, size := range []int{1, 7, len(all), len(all) + 1} {
		if !bytes.Equal(joined(all, size).Bytes(), whole.Bytes()) {
			t.Errorf("parts of %d blocks make another archive than that of all", size)
		}
	}
	for name, sent := range map[string][]protocol.Link{"fewer": all[:4], "more": all[:6], "others": append(slices.Clone(all[:4]), all[9])} {
		part, asked := new(bytes.Buffer), false
		if err := cas.WriteParts(t.Context(), part, from, sent); err != nil {
			t.Fatal(err)
		}
		_, err := cas.JoinParts(io.Discard, record, func() ([]protocol.Link, io.ReadCloser, error) {
			if asked {
				return nil, nil, io.EOF
			}
			asked = true
			return all[:5], io.NopCloser(part), nil
		})
		if !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("a part with %s blocks than were asked for: %v", name, err)
		}
	}
	importing := func(archive *bytes.Buffer) (cas.Imported, error) {
		return cas.Import(t.Context(), archive, to, cas.ImportOptions{})
	}
	if _, err := importing(joined(all[1:], 10)); !errors.Is(err, protocol.ErrVerify) && !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("an archive without its head was imported where that is not: %v", err)
	}
	// The blocks come without the run, as a process leaves them that was killed between the two.
	for _, l := range all[:len(all)/2] {
		data, err := from.Block(t.Context(), l)
		if err == nil {
			err = to.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{{Link: l, Data: data}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lacking, err := to.Lacks(t.Context(), all)
	if err != nil || len(lacking) != len(all)-len(all)/2 {
		t.Fatalf("%d of %d blocks are lacking: %v", len(lacking), len(all), err)
	}
	if got, err := importing(joined(lacking, 10)); err != nil || len(got.Runs) != 1 || got.Blocks != int64(len(lacking))+1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := importing(joined(nil, 10)); err != nil || len(got.Held) != 1 {
		t.Errorf("once more, without a block: %+v, %v", got, err)
	}
	a, _, _ := from.Tip(t.Context(), "run")
	if b, _, err := to.Tip(t.Context(), "run"); err != nil || a != b {
		t.Errorf("the head is %s, want %s: %v", b, a, err)
	}
	if err := cas.WriteParts(t.Context(), io.Discard, from, []protocol.Link{cas.Raw([]byte("nowhere")).Link}); !errors.Is(err, protocol.ErrCorrupt) && !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("a part that is not there: %v", err)
	}
}
