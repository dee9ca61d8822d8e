package server

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
)

// Bounds of what is kept with a run.
const (
	maxName        = 200 // bytes of a type, scope, user, tag or request id
	maxTitle       = 1000
	maxDescription = 100_000
	maxTags        = 64
)

// MaxBody is the most bytes of the body of a request. A memory holds up to 1 MiB, which JSON may write in
// six bytes each; inputs, answers and messages hold what a person or another program has to say.
func MaxBody(r *http.Request) int64 {
	switch p := r.URL.Path; {
	case strings.HasPrefix(p, "/v1/memories/"):
		return 8 * protocol.MemoryMax
	case strings.HasPrefix(p, "/v1/runs"):
		return 16 << 20
	}
	return 1 << 20
}

// ReadStart reads the body of POST /v1/runs, as strictly as a server does; an error wraps protocol.ErrBadRequest or
// protocol.ErrTooLarge.
func ReadStart(r *http.Request) (*api.Start, error) {
	s := new(api.Start)
	if err := decode(r, s, wanted); err != nil {
		return nil, err
	}
	return s, checkStart(s)
}

func checkStart(s *api.Start) error {
	if s.Workflow == "" {
		return reply.Badf("workflow is missing: the name of one that GET /v1/workflows lists")
	}
	for _, f := range []struct {
		name, text string
		most       int
	}{
		{"title", s.Title, maxTitle}, {"description", s.Description, maxDescription}, {"type", s.Type, maxName}, {"scope", s.Scope, maxName},
		{"created_by", s.CreatedBy, maxName}, {"target_user", s.TargetUser, maxName}, {"request_id", s.RequestID, maxName}, {"firing", s.Firing, maxName}, {"caused_by", s.CausedBy, 2 * maxName},
	} {
		if err := short(f.name, f.text, f.most); err != nil {
			return err
		}
	}
	if strings.ContainsFunc(s.RequestID, unicode.IsControl) {
		return reply.Badf("request_id has characters that cannot be printed")
	}
	if len(s.Tags) > maxTags {
		return reply.Badf("tags: %d of them, at most %d", len(s.Tags), maxTags)
	}
	for i, t := range s.Tags {
		if t == "" {
			return reply.Badf("tags[%d] is empty", i)
		}
		if err := short(fmt.Sprintf("tags[%d]", i), t, maxName); err != nil {
			return err
		}
	}
	if err := checkModels(s.Models); err != nil {
		return err
	}
	if _, err := protocol.ParseContext(s.Context); err != nil {
		return reply.Badf("context: %v", err)
	}
	if _, err := protocol.ParseCache(s.Cache); err != nil {
		return reply.Badf("cache: %v", err)
	}
	return nil
}

func checkModels(byRole map[string]api.ModelList) error {
	for role, list := range byRole {
		if len(list) == 0 {
			return reply.Badf("models[%q] is empty", role)
		}
	}
	return nil
}

// short bounds a text; it must be one, in UTF-8.
func short(name, text string, most int) error {
	switch {
	case len(text) > most:
		return reply.Badf("%s has %d bytes, at most %d", name, len(text), most)
	case !utf8.ValidString(text):
		return reply.Badf("%s is not UTF-8", name)
	}
	return nil
}
