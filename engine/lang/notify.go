package lang

import (
	"cmp"
	"fmt"
	"slices"

	"wf/engine/yaml"
	"wf/protocol"
)

// decodeNotify reads where notifications about runs go, sorted by name.
func (l *loader) decodeNotify(n *yaml.Node) {
	for _, it := range items(n) {
		if !l.good(it) || it.Kind != yaml.Mapping {
			continue
		}
		s := protocol.Sink{Name: l.str(it.Get("name")), Webhook: l.str(it.Get("webhook")), Secret: l.str(it.Get("secret")), Command: l.str(it.Get("command")),
			Desktop: l.yes(it.Get("desktop")), Include: l.words(it.Get("include")), Page: l.str(it.Get("page"))}
		for _, on := range l.words(it.Get("on")) {
			s.On = append(s.On, protocol.Moment(on))
		}
		slices.Sort(s.On)
		slices.Sort(s.Include)
		s.On, s.Include = slices.Compact(s.On), slices.Compact(s.Include)
		s.Network, s.NetworkHosts = l.network(it.Get("network"))
		switch err := s.Check(); {
		case s.Name == "": // reported
		case slices.ContainsFunc(l.w.Notify, func(o protocol.Sink) bool { return o.Name == s.Name }):
			l.report(it.Get("name"), Diagnostic{Code: "WF018", Message: fmt.Sprintf("the sink %s is there twice", s.Name), Hint: "remove one, or give it another name"})
		case err != nil:
			l.report(it, Diagnostic{Code: "WF002", Message: "notify: " + err.Error(), Hint: "wf help language shows the keys of a sink"})
		case s.Secret != "" && !slices.Contains(l.w.Secrets, s.Secret):
			l.report(it.Get("secret"), Diagnostic{Code: "WF040", Message: fmt.Sprintf("secret %s is not declared", s.Secret), Hint: fmt.Sprintf("add secrets: [%s] at the top", s.Secret)})
		}
		l.w.Notify = append(l.w.Notify, s)
	}
	protocol.Sort(l.w.Notify, func(a, b protocol.Sink) int { return cmp.Compare(a.Name, b.Name) })
}
