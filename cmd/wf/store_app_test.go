package main

import "wf/service/compose"

// appOf is wf with a store alone.
func appOf(store string) *app {
	return &app{Setup: &compose.Setup{Options: compose.Options{Store: store}}}
}
