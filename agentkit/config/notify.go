package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// Sink is an entry of notify: where notifications about runs go.
//
//	notify:
//	  - name: ops
//	    on: [waiting, failed, limit]
//	    workflows: [deploy]
//	    webhook: https://ops.example.com/wf
//	    secret: WF_OPS_SECRET
//	    include: [title, question]
//
// The keys are those of notify in a workflow, and workflows.
type Sink struct {
	Name      string `json:"name"`
	On        Words  `json:"on"`        // none is all
	Workflows Words  `json:"workflows"` // names; none is all
	Webhook   string `json:"webhook"`
	Secret    string `json:"secret"` // variable of the environment
	Command   string `json:"command"`
	Desktop   bool   `json:"desktop"`
	Include   Words  `json:"include"`
	Network   Words  `json:"network"` // HOST:PORT, or allow
	Page      string `json:"page"`
}

// Words is a list that may be written as one word.
type Words []string

// UnmarshalJSON reads a word or a list of words.
func (w *Words) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*w = Words{one}
		return nil
	}
	if json.Unmarshal(b, (*[]string)(w)) != nil {
		return errors.New("on, workflows, include and network of a sink want a word, or a list of words")
	}
	return nil
}

// Sink is the entry as notifications are sent by it.
func (s Sink) Sink() (protocol.Sink, error) {
	sorted := func(list []string) []string {
		list = slices.Clone(list)
		slices.Sort(list)
		return slices.Compact(list)
	}
	out := protocol.Sink{Name: s.Name, Webhook: s.Webhook, Secret: s.Secret, Command: s.Command, Desktop: s.Desktop,
		Include: sorted(s.Include), Page: s.Page}
	for _, on := range sorted(s.On) {
		out.On = append(out.On, protocol.Moment(on))
	}
	for _, host := range s.Network {
		if host == protocol.NetworkAllow || host == protocol.NetworkPackages {
			out.Network = host
			continue
		}
		e, err := protocol.ParseEndpoint(host)
		if err != nil {
			return out, fmt.Errorf("network: %w", err)
		}
		out.NetworkHosts = append(out.NetworkHosts, e.String())
	}
	out.NetworkHosts = sorted(out.NetworkHosts)
	if out.Network == protocol.NetworkAllow && len(s.Network) > 1 {
		return out, errors.New("network: allow stands alone")
	}
	return out, out.Check()
}

func checkSinks(all []Sink) error {
	for i, s := range all {
		if _, err := s.Sink(); err != nil {
			return fmt.Errorf("notify[%d]: %w", i, err)
		}
		if slices.ContainsFunc(all[:i], func(o Sink) bool { return o.Name == s.Name }) {
			return fmt.Errorf("notify[%d]: the name %s is there twice", i, s.Name)
		}
	}
	return nil
}

// Where is where the notifications of a sink go, for people.
func Where(s protocol.Sink) string {
	switch {
	case s.Webhook != "":
		return s.Webhook
	case s.Command != "":
		return "the command " + s.Command
	}
	return "the desktop"
}

// wantNotify is what the project wants to be told of runs.
func (l *Loaded) wantNotify() (w Want, err error) {
	var does, lines []string
	for _, s := range l.project.Notify {
		sink, err := s.Sink()
		if err != nil {
			return w, err
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return w, err
		}
		does = append(does, "send notifications about runs to "+Where(sink))
		lines = append(lines, string(raw))
	}
	if len(does) == 0 {
		return w, nil
	}
	return l.want(Notify, "notify", strings.Join(does, "; "), strings.Join(lines, "\n")+"\n", append([]string{"notify"}, lines...))
}

// UserSinks and ProjectSinks are the entries of notify of the user's own config, and of the project's where that is
// trusted with them.
func (l *Loaded) UserSinks() []Sink { return l.user.Notify }

// ProjectSinks: see UserSinks.
func (l *Loaded) ProjectSinks() []Sink { return l.projectSinks }
