package memory

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"wf/agentkit/tool"
	"wf/protocol"
)

// Names are the memory tools, sorted.
var Names = []string{"context_for", "edit_memory", "list_memories", "recall", "remember"}

// Changes reports whether a memory tool changes a memory.
func Changes(name string) bool { return name == "edit_memory" || name == "remember" }

// Desk is what the memory tools of one visit work with.
type Desk struct {
	// Open gives the memory of the visit.
	Open func(ctx context.Context) (*Store, error)

	// Origin is the author of changes; its Key is stable over attempts of the visit and distinct between
	// visits. With the id of the call it keeps a call that is repeated after a crash from
	// acting twice.
	Origin Origin

	// Changed is called for every change, when it is durable, with the name of the memory and the
	// text of its newest event's CID. An error ends the call.
	Changed func(ctx context.Context, scope, head string) error
}

//go:embed *.md
var texts embed.FS

const (
	tagsParameter  = `"tags":{"type":"array","items":{"type":"string"},"description":%q}`
	modeParameter  = `"tag_mode":{"type":"string","enum":["or","and"],"description":"one of the tags (or, the default), or all of them (and)"}`
	limitParameter = `"limit":{"type":"integer","minimum":1,"maximum":100,"description":"memories at most, %d without"}`
)

func parameters(required string, properties ...string) protocol.JSON {
	return protocol.JSON(`{"type":"object","additionalProperties":false,` + required + `"properties":{` + strings.Join(properties, ",") + `}}`)
}

// Tools are the memory tools, sorted by name. A call that was cut off may be repeated: those
// that change something find what they did.
func (d Desk) Tools() []tool.Tool {
	of := func(name string, p protocol.JSON, run func(context.Context, *Store, tool.Workspace, json.RawMessage) (string, error)) tool.Tool {
		changes := Changes(name)
		return tool.Tool{Name: name, Description: tool.Text(texts, name), Parameters: p, ReadOnly: !changes, Repeatable: changes,
			Run: func(ctx context.Context, at tool.Workspace, args json.RawMessage) (tool.Result, error) {
				return d.call(ctx, func(s *Store) (string, error) { return run(ctx, s, at, args) })
			}}
	}
	return []tool.Tool{
		of("context_for", parameters(`"required":["tags"],`,
			fmt.Sprintf(tagsParameter, "what the memories are about"), modeParameter, fmt.Sprintf(limitParameter, DefaultContext)), contextFor),
		of("edit_memory", parameters("", `"id":{"type":"integer","minimum":1,"description":"the memory"}`,
			fmt.Sprintf(tagsParameter, "its tags from now on"),
			`"pinned":{"type":"boolean","description":"at the start of every new conversation, or no longer"}`,
			`"special":{"type":"string","description":"new text of the anchor memory; empty removes it"}`), d.edit),
		of("list_memories", parameters(""), list),
		of("recall", parameters("", `"query":{"type":"string","description":"what is looked for"}`,
			fmt.Sprintf(tagsParameter, "only memories that have them"), modeParameter, fmt.Sprintf(limitParameter, DefaultRecall)), recall),
		of("remember", parameters(`"required":["content"],`, `"content":{"type":"string","description":"what to keep"}`,
			`"important":{"type":"boolean","description":"pin it: known at the start of every new conversation"}`,
			fmt.Sprintf(tagsParameter, "short words it is found by")), d.remember),
	}
}

// call opens the memory and turns what went wrong into a result. An error is ctx's, or that of
// Changed.
func (d Desk) call(ctx context.Context, run func(*Store) (string, error)) (tool.Result, error) {
	s, err := d.Open(ctx)
	said := ""
	if err == nil {
		said, err = run(s)
	}
	switch {
	case err == nil:
		return tool.Result{Content: said}, nil
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	}
	if e, ok := err.(untold); ok {
		return tool.Result{}, e.error
	}
	content := "error: " + err.Error()
	if hint := protocol.HintOf(err); hint != "" && !errors.Is(err, protocol.ErrMemory) {
		content += " (" + hint + ")"
	}
	return tool.Result{Content: content, IsError: true}, nil
}

// untold is a change that could not be journaled.
type untold struct{ error }

func (d Desk) changed(ctx context.Context, s *Store) error {
	if d.Changed == nil {
		return nil
	}
	head, _ := s.Head()
	if err := d.Changed(ctx, s.Scope(), head.String()); err != nil {
		return untold{err}
	}
	return nil
}

type callKey struct{}

// WithCall returns a context that carries the id of a tool call.
func WithCall(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, callKey{}, id)
}

// origin is the author of a change, with the key of the call at hand.
func (d Desk) origin(ctx context.Context) Origin {
	o := d.Origin
	if id, ok := ctx.Value(callKey{}).(string); ok && o.Key != "" {
		o.Key = KeyOf(o.Key, id)
	} else {
		o.Key = ""
	}
	return o
}

// KeyOf makes the key of a change from what identifies it.
func KeyOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d\x00%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func clean(at tool.Workspace, s string) string {
	if at.Clean != nil {
		return at.Clean(s)
	}
	return s
}

// search is what recall and context_for are asked alike.
type search struct {
	Tags  []string `json:"tags"`
	Mode  Mode     `json:"tag_mode"`
	Limit int      `json:"limit"`
}

func (a search) find(ctx context.Context, s *Store, text string) (string, error) {
	switch {
	case a.Mode != "" && a.Mode != Any && a.Mode != All:
		return "", fmt.Errorf("tag_mode is %q (want or, and)", a.Mode)
	case a.Limit < 0 || a.Limit > MaxHits:
		return "", fmt.Errorf("limit is %d (want 1 to %d)", a.Limit, MaxHits)
	}
	hits, err := s.Recall(ctx, Query{Text: text, Tags: a.Tags, Mode: a.Mode, Limit: a.Limit})
	if err != nil {
		return "", err
	}
	return s.hitsText(ctx, hits)
}

func (d Desk) remember(ctx context.Context, s *Store, at tool.Workspace, raw json.RawMessage) (string, error) {
	var args struct {
		Content   string   `json:"content"`
		Important bool     `json:"important"`
		Tags      []string `json:"tags"`
	}
	if err := tool.Decode(raw, &args, "content"); err != nil {
		return "", err
	}
	for i := range args.Tags {
		args.Tags[i] = clean(at, args.Tags[i])
	}
	ids, err := s.Remember(ctx, Note{Content: clean(at, args.Content), Tags: args.Tags, Pinned: args.Important, Origin: d.origin(ctx)})
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("remembered as %d", ids[0])
	if args.Important {
		said += ", pinned"
	}
	return said, d.changed(ctx, s)
}

func recall(ctx context.Context, s *Store, at tool.Workspace, raw json.RawMessage) (string, error) {
	var args struct {
		Query string   `json:"query"`
		Tags  []string `json:"tags"`
		Mode  Mode     `json:"tag_mode"`
		Limit int      `json:"limit"`
	}
	if err := tool.Decode(raw, &args); err != nil {
		return "", err
	}
	return search{args.Tags, args.Mode, args.Limit}.find(ctx, s, clean(at, args.Query))
}

func contextFor(ctx context.Context, s *Store, _ tool.Workspace, raw json.RawMessage) (string, error) {
	var args search
	if err := tool.Decode(raw, &args, "tags"); err != nil {
		return "", err
	}
	return args.find(ctx, s, "")
}

func (d Desk) edit(ctx context.Context, s *Store, at tool.Workspace, raw json.RawMessage) (string, error) {
	var args struct {
		ID      *protocol.Seq `json:"id"`
		Tags    *[]string     `json:"tags"`
		Pinned  *bool         `json:"pinned"`
		Special *string       `json:"special"`
	}
	if err := tool.Decode(raw, &args); err != nil {
		return "", err
	}
	o := d.origin(ctx)
	switch {
	case args.ID == nil && args.Special == nil:
		return "", fmt.Errorf("name a memory by its id, or give the text of the special anchor memory")
	case args.ID != nil && args.Special != nil:
		return "", fmt.Errorf("id and special are two different memories: change one at a time")
	case args.Special != nil && (args.Tags != nil || args.Pinned != nil):
		return "", fmt.Errorf("the anchor memory has no tags and is always pinned: give special alone")
	case args.Special != nil:
		if err := s.SetAnchor(ctx, clean(at, *args.Special), o); err != nil {
			return "", err
		}
		return "the anchor memory is changed; it is read at the start of the next conversation", d.changed(ctx, s)
	case args.Tags == nil && args.Pinned == nil:
		return "", fmt.Errorf("say what to change: tags or pinned")
	}
	if args.Tags != nil {
		for i := range *args.Tags {
			(*args.Tags)[i] = clean(at, (*args.Tags)[i])
		}
	}
	m, err := s.Edit(ctx, *args.ID, Edit{Tags: args.Tags, Pinned: args.Pinned}, o)
	if err != nil {
		return "", err
	}
	return "changed: " + head(m, nil), d.changed(ctx, s)
}

func list(ctx context.Context, s *Store, _ tool.Workspace, raw json.RawMessage) (string, error) {
	if err := tool.Decode(raw, &struct{}{}); err != nil {
		return "", err
	}
	l, err := s.List(ctx, RecentListed)
	if err != nil {
		return "", err
	}
	return s.ListText(ctx, l)
}
