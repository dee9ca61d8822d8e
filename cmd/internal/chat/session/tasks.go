package session

import (
	"context"

	"wf/api"
	"wf/cmd/internal/chat"
)

// Tasks are all tasks of the run, with their pages.
func (s *Session) Tasks(ctx context.Context) ([]chat.TaskPage, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := s.at.Service.Tasks(ctx, s.run(), api.Part{})
	if err != nil {
		return nil, err
	}
	out := make([]chat.TaskPage, len(list.Items))
	for i, x := range list.Items {
		if out[i], err = s.at.TaskPage(x); err != nil {
			return nil, err
		}
	}
	return out, nil
}
