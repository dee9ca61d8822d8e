package main

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

// Two chats end one after the other: what was written in both is there for the next.
func TestHistoryOfChatsIsAddedTo(t *testing.T) {
	h := history(filepath.Join(t.TempDir(), "state", "chat_history"))
	if err := errors.Join(h.add([]string{"one"}), h.add([]string{"two\nlines"}), h.add([]string{"three"}), h.add(nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := h.read(); err != nil || !slices.Equal(got, []string{"one", "two\nlines", "three"}) {
		t.Errorf("kept %q, %v", got, err)
	}
	if got, err := history("").read(); got != nil || err != nil || history("").add([]string{"x"}) != nil {
		t.Errorf("without a file it keeps %q, %v", got, err)
	}
}
