package main

import (
	"strings"
	"wf/agentkit/config"
)

// tellModels prints how the models were found, one line for roles that agree.
func (a *app) tellModels(all []config.Resolution) {
	if a.AsJSON() {
		return
	}
	var order []string
	roles := map[string][]string{}
	for _, r := range all {
		key := strings.TrimPrefix(r.String(), r.Role+": ")
		if roles[key] == nil {
			order = append(order, key)
		}
		roles[key] = append(roles[key], r.Role)
	}
	p := a.Err.Paint()
	for _, key := range order {
		a.Progress("  %s %s: %s", p.Dim("model"), strings.Join(roles[key], ", "), key)
	}
}
