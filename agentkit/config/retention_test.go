package config_test

import (
	"errors"
	"testing"
	"time"

	"wf/agentkit/config"
)

func TestOnlyTheUserSaysAfterHowLongRunsAreDeleted(t *testing.T) {
	const text = "retention: {done: 30d, failed: 2w, files: 5d, keep_last: 20, floor: 36h}\n"
	r := load(t, places(t, text, "model: a/b\n")).Retention
	want := config.Retention{Done: config.Age(30 * 24 * time.Hour), Failed: config.Age(14 * 24 * time.Hour), Files: config.Age(5 * 24 * time.Hour), KeepLast: 20, Floor: config.Age(36 * time.Hour)}
	if r == nil || *r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
	if r := load(t, places(t, "model: a/b\n", "")).Retention; r != nil {
		t.Errorf("without the key: %+v", r)
	}
	if _, err := config.Load(places(t, "", text)); !errors.Is(err, config.ErrConfig) {
		t.Errorf("in a project: %v", err)
	}
	for _, wrong := range []string{"retention: {done: 30}", "retention: {done: -1d}", "retention: {done: 0d}", "retention: {done: 40000d}", "retention: {done: 6m}", "retention: {done: 90s}", "retention: {keep_last: -1}", "retention: {waiting: 3d}"} {
		if _, err := config.Load(places(t, wrong+"\n", "")); !errors.Is(err, config.ErrConfig) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
