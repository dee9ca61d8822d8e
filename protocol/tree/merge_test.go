package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wf/protocol"
)

// Of entries with one path the newest counts, a file takes the place of a directory and the other way round, and what is the
// same in all is not made anew.
func TestMerge(t *testing.T) {
	blocks := map[protocol.Link][]byte{}
	made := 0
	put := func(b Block) error {
		made++
		blocks[b.Link] = b.Data
		return nil
	}
	read := func(l protocol.Link) ([]byte, error) {
		b, ok := blocks[l]
		if !ok {
			return nil, fmt.Errorf("%s: %w", l, protocol.ErrNotFound)
		}
		return b, nil
	}
	var dir func(files map[string]string) Entry
	dir = func(files map[string]string) Entry {
		below := map[string]map[string]string{}
		var entries []Entry
		for name, text := range files {
			if top, rest, ok := strings.Cut(name, "/"); ok {
				if below[top] == nil {
					below[top] = map[string]string{}
				}
				below[top][rest] = text
				continue
			}
			l, err := Content(strings.NewReader(text), int64(len(text)), put)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, Entry{Name: name, Mode: File, Size: int64(len(text)), Link: l})
		}
		for name, files := range below {
			e := dir(files)
			e.Name = name
			entries = append(entries, e)
		}
		slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		all, err := Encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range all {
			blocks[b.Link] = b.Data
		}
		return Entry{Mode: Dir, Link: all[len(all)-1].Link, Size: sizeOf(entries)}
	}
	tree := func(files map[string]string) protocol.Link { return dir(files).Link }
	many := map[string]string{}
	for i := range 3 * SplitAbove {
		many[fmt.Sprintf("m/%05d", i)] = fmt.Sprint(i)
	}
	for name, x := range map[string]struct{ want, trees []map[string]string }{
		"nothing":     {},
		"one":         {[]map[string]string{{"a": "1", "b/c": "2"}}, []map[string]string{{"a": "1", "b/c": "2"}}},
		"the newest":  {[]map[string]string{{"a": "3", "b/c": "2", "b/d": "22", "e": "1"}}, []map[string]string{{"a": "1", "e": "1"}, {"b/c": "2", "a": "2"}, {"a": "3", "b/d": "22"}}},
		"a file":      {[]map[string]string{{"a": "2"}}, []map[string]string{{"a/b": "1"}, {"a": "2"}}},
		"a directory": {[]map[string]string{{"a/c": "3"}}, []map[string]string{{"a/b": "1"}, {"a": "2"}, {"a/c": "3"}}},
		"again":       {[]map[string]string{{"a": "1", "b": "2"}}, []map[string]string{{"a": "1"}, {"b": "2"}, {"a": "1"}}},
		"many":        {[]map[string]string{many}, []map[string]string{many, many, {"m/00000": "0"}}},
	} {
		var roots []protocol.Link
		for _, files := range x.trees {
			roots = append(roots, tree(files), protocol.Link{})
		}
		want := protocol.Link{}
		if len(x.want) > 0 {
			want = tree(x.want[0])
		}
		made = 0
		got, err := Merge(read, put, roots...)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
		if name == "one" && made > 0 {
			t.Errorf("%d blocks are made anew of one tree", made)
		}
	}
	if _, err := Merge(read, put, tree(map[string]string{"a": "1"}), protocol.RawLink([]byte("none"))); err == nil {
		t.Error("what is no tree was merged")
	}
}
