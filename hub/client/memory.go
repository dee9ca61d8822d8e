package client

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"wf/api"
	"wf/protocol"
)

// pages reads a list in as many answers as that takes, from p on: get reads one of them, and list gives the items of
// an answer and where the next one begins. The last answer is given, with the items of all.
func pages[T, E any](p api.Part, path string, query url.Values, get func(path string) (*T, error), list func(*T) (*[]E, string)) (*T, error) {
	for all := []E{}; ; {
		if p.After != "" {
			query.Set("after", p.After)
		}
		if p.Limit > 0 {
			query.Set("limit", strconv.Itoa(min(p.Limit-len(all), api.MaxPart)))
		}
		answer, err := get(withQuery(path, query))
		if err != nil {
			return nil, err
		}
		items, next := list(answer)
		more := len(*items) > 0
		all = append(all, *items...)
		*items = all
		if next == "" || p.Limit > 0 && len(all) >= p.Limit {
			return answer, nil
		}
		if err := sound(more && next != p.After, path); err != nil {
			return nil, err
		}
		p.After = next
	}
}

// Tasks lists the tasks of a run.
func (s Service) Tasks(ctx context.Context, run protocol.RunID, p api.Part) (*api.TaskList, error) {
	return pages(p, runPath(run, "tasks"), url.Values{}, func(path string) (*api.TaskList, error) {
		return checked(ctx, s.API, path, func(l *api.TaskList) bool { return soundTasks(l.Items...) })
	}, func(l *api.TaskList) (*[]*api.Task, string) { return &l.Items, l.Next })
}

// soundTasks reports whether tasks have what every task has.
func soundTasks(list ...*api.Task) bool {
	return !slices.ContainsFunc(list, func(t *api.Task) bool { return t == nil || t.Cost == nil })
}

// Task is the task of a step.
func (s Service) Task(ctx context.Context, run protocol.RunID, step string) (*api.RunTask, error) {
	return checked(ctx, s.API, runPath(run, "tasks", step), func(t *api.RunTask) bool { return soundTasks(t.Task) })
}

func withQuery(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// ofMemories is the address of what is asked of memories: a hub asks the worker that is named.
func (s Service) ofMemories(path string, v url.Values) string {
	if s.Worker != "" {
		v.Set("agent", s.Worker)
	}
	return withQuery("/v1/memories"+path, v)
}

// tell posts what is asked of a memory.
func tell[T any](ctx context.Context, s Service, verb string, body any) (*T, error) {
	v := new(T)
	return v, s.API.post(ctx, s.ofMemories("/"+verb, url.Values{}), body, v)
}

// Scopes lists the memories of the server.
func (s Service) Scopes(ctx context.Context) (*api.MemoryScopes, error) {
	return get[api.MemoryScopes](ctx, s.API, s.ofMemories("", url.Values{}))
}

// Memories lists what a memory holds.
func (s Service) Memories(ctx context.Context, q api.MemoryQuery) (*api.Memories, error) {
	query := given("scope", q.Scope, "agent", s.Worker)
	query["tag"] = q.Tags
	for name, wanted := range map[string]bool{"all_tags": q.AllTags, "pinned": q.Pinned, "oldest": q.Oldest, "sums": q.Sums} {
		if wanted {
			query.Set(name, "true")
		}
	}
	return pages(q.Part, "/v1/memories/items", query, func(path string) (*api.Memories, error) {
		return get[api.Memories](ctx, s.API, path)
	}, func(m *api.Memories) (*[]api.MemoryItem, string) { return &m.Items, m.Next })
}

// Memory is one memory of a scope.
func (s Service) Memory(ctx context.Context, scope string, id protocol.Seq) (*api.OneMemory, error) {
	return get[api.OneMemory](ctx, s.API, s.ofMemories(fmt.Sprintf("/items/%d", id), given("scope", scope)))
}

// Recall finds memories.
func (s Service) Recall(ctx context.Context, q api.Recall) (*api.Recalled, error) {
	return tell[api.Recalled](ctx, s, "recall", q)
}

// Remember adds memories. What is longer than a server takes at once is an error wrapping protocol.ErrTooLarge.
func (s Service) Remember(ctx context.Context, r api.Remember) (*api.Remembered, error) {
	notes := make([]api.Note, len(r.Notes))
	for i, n := range r.Notes {
		n.Content = strings.ToValidUTF8(n.Content, "\ufffd") // JSON would replace each byte
		notes[i] = n
	}
	r.Notes = notes
	out, err := tell[api.Remembered](ctx, s, "remember", r)
	if err == nil {
		err = sound(len(out.IDs) == len(notes), "/v1/memories/remember")
	}
	return out, err
}

// ChangeMemories changes memories.
func (s Service) ChangeMemories(ctx context.Context, c api.MemoryChanges) (*api.MemoriesChanged, error) {
	return tell[api.MemoriesChanged](ctx, s, "change", c)
}

// Reindex makes the vectors of a memory; how far that has come is not known before it is done.
func (s Service) Reindex(ctx context.Context, r api.Reindex, _ func(done, of int)) (*api.Reindexed, error) {
	return tell[api.Reindexed](ctx, s, "reindex", r)
}
