package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
)

// decode reads the body of a request strictly: one JSON object, no unknown fields. An empty
// body is the zero value where empty allows that.
func decode(r *http.Request, into any, empty bool) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	hasBody := r.ContentLength != 0
	if hasBody && (err != nil || media != "application/json") {
		return wrongMedia(r, "application/json")
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if empty && errors.Is(err, io.EOF) {
			return nil
		}
		return reply.BodyError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return reply.Badf("the body holds more than one JSON value")
	}
	return nil
}

// wrongMedia refuses the form of a body.
func wrongMedia(r *http.Request, wanted string) error {
	return protocol.ErrMedia.With("send it as "+wanted, "the body is %.100q, %s is wanted", r.Header.Get("Content-Type"), wanted)
}

// Whether a body may be left out.
const wanted, optional = false, true

// body reads the body of a call for do.
func body[In any](empty bool, do func(*Server, *call, *In) (any, error)) handler {
	return func(s *Server, c *call) (any, error) {
		in := new(In)
		if err := decode(c.Request, in, empty); err != nil {
			return nil, err
		}
		return do(s, c, in)
	}
}

// parameters of a query that a route knows; all others are refused.
type parameters map[string][]string

// Query gives the parameters of a request, of which each is known, and given once unless there is "..." behind
// its name. An error wraps protocol.ErrBadRequest.
func Query(r *http.Request, known ...string) (parameters, error) {
	all := r.URL.Query()
	for name, values := range all {
		many := slices.Contains(known, name+"...") || slices.Contains(known, anyOther)
		switch {
		case many:
		case !slices.Contains(known, name) && name == "agent":
			return nil, protocol.ErrBadRequest.With("leave --worker out", "this is no hub, and has its own store alone: the parameter agent is for a hub")
		case !slices.Contains(known, name) && len(known) == 0:
			return nil, reply.Badf("there is no parameter %q: no parameters are taken here", name)
		case !slices.Contains(known, name):
			return nil, reply.Badf("there is no parameter %q; there are %s", name, strings.Join(known, ", "))
		case len(values) > 1:
			return nil, reply.Badf("the parameter %q is given %d times", name, len(values))
		}
	}
	return parameters(all), nil
}

func (p parameters) text(name string) string {
	if len(p[name]) == 0 {
		return ""
	}
	return p[name][0]
}

// number is a parameter between least and most, or its default.
func (p parameters) number(name string, least, most, otherwise int) (int, error) {
	text := p.text(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, reply.Badf("%s=%q: want a number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// part is the part of a list that is asked for, within what one answer holds.
func (p parameters) part() (out api.Part, err error) {
	out.After, out.Bytes = p.text("after"), api.PartBytes
	out.Limit, err = p.number("limit", 1, api.MaxPart, api.MaxPart)
	return out, err
}

// yes is a parameter that is true or false, false without one.
func (p parameters) yes(name string) (bool, error) {
	switch text := p.text(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, reply.Badf("%s=%q: want true or false", name, text)
	}
}

// untilItMoves has a client ask each time whether what it holds is still so.
const untilItMoves = "private, no-cache"

// unchanged answers a request whose client holds the newest version already; control says how it is kept.
func unchanged(w http.ResponseWriter, r *http.Request, tag, control string) bool {
	tag = `"` + tag + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", control)
	for held := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if held = strings.TrimPrefix(strings.TrimSpace(held), "W/"); held == tag || held == "*" {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}
