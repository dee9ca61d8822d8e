package main

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
	"wf/hub/client"
	"wf/protocol"
)

// cost is wf cost as text, by one thing after the other.
func (s *chatSession) cost(ctx context.Context, by ...string) (chat.Outcome, error) {
	var tables []string
	for _, group := range by {
		text, err := costText(ctx, s.api, s.current(), group)
		if err != nil {
			return chat.Outcome{}, err
		}
		tables = append(tables, text)
	}
	return chat.Outcome{Dialog: true, Wide: true, Title: "Tokens and cost of run " + string(s.current()), Text: strings.Join(tables, "\n")}, nil
}

// costText is wf cost as text: the numbers under each other, and what a task was for last, so
// that a narrow screen cuts that.
func costText(ctx context.Context, server *client.API, run protocol.RunID, by string) (string, error) {
	var c api.Cost
	raw, err := server.Cost(ctx, run, by)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return "", err
	}
	rows := [][]string{{"By " + strings.ToUpper(by[:1]) + by[1:], "calls", "input", "cached", "written", "output", "cost", ""}}
	add := func(name string, r *api.CostRow) {
		row := []string{plain.Text(name)}
		for _, n := range []int64{int64(r.Calls), r.Input, r.Cached, r.CacheWrite5m + r.CacheWrite1h, r.Output} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, append(row, render.Money(r), plain.Line(plain.Text(r.Goal), protocol.TaskGoalMax)))
	}
	for _, r := range c.Items {
		add(r.Name, r)
	}
	add("total", c.Total)
	return numbers(rows), nil
}

// numbers writes rows whose first column is a name, and whose last one is words; those between
// are numbers, their ends under each other. The last row is a sum.
func numbers(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], plain.Width(cell))
		}
	}
	var b strings.Builder
	last := len(widths) - 1
	for n, row := range rows {
		var line strings.Builder
		line.WriteString(plain.Pad(row[0], widths[0]))
		for i := 1; i < last; i++ {
			line.WriteString(strings.Repeat(" ", 2+widths[i]-plain.Width(row[i])) + row[i])
		}
		text := strings.TrimRight(line.String()+"  "+row[last], " ")
		if n == len(rows)-1 {
			b.WriteString(strings.Repeat("─", plain.Width(line.String())) + "\n")
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}
