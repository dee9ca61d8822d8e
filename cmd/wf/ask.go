package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"wf/engine"
	"wf/protocol"
)

// askAtTerminal asks the person at the terminal what a run waits for, and has the answer recorded.
// It reports false where the run waits for something else, or the person leaves it open.
func (a *app) askAtTerminal(ctx context.Context, v *engine.View, record func(context.Context, engine.Reply) error) (bool, error) {
	if v.Status != protocol.Waiting {
		return false, nil
	}
	for _, w := range v.Waiting {
		switch w.Kind {
		case protocol.WaitQuestion, protocol.WaitChoice, protocol.WaitApproval, protocol.WaitTask:
		default:
			continue
		}
		p := paint{a.err.color}
		fmt.Fprintf(a.err, "\n%s %s\n", p.bold(w.Step+" asks:"), indentLines(w.Question, "  "))
		for i, c := range w.Choices {
			fmt.Fprintf(a.err, "  %d  %s\n", i+1, c.Label)
		}
		reply, err := a.readReply(ctx, w)
		if err != nil || reply == nil {
			return false, err
		}
		reply.Step, reply.By, reply.Source = w.Step, whoami(), "terminal"
		err = record(ctx, *reply)
		switch {
		case errors.Is(err, protocol.ErrUsage): // asked again
			fmt.Fprintln(a.err, messageOf(err))
			return true, nil
		case errors.Is(err, protocol.ErrNotWaiting):
			a.progress("%s was answered elsewhere meanwhile", w.Step)
			return true, nil
		}
		return err == nil, err
	}
	return false, nil
}

// readReply reads one line; nil at the end of input or when it is empty. A number picks a
// choice; with a text behind it, the text goes along.
func (a *app) readReply(ctx context.Context, w engine.WaitingView) (*engine.Reply, error) {
	fmt.Fprint(a.err, "> ")
	type input struct {
		text string
		err  error
	}
	got := make(chan input, 1)
	go func() {
		text, err := bufio.NewReader(a.in).ReadString('\n')
		got <- input{text, err}
	}()
	var in input
	select {
	case in = <-got:
	case <-ctx.Done(): // the reader is left behind; the process ends soon
		return nil, context.Cause(ctx)
	}
	text := strings.TrimSpace(in.text)
	switch {
	case text == "" && (in.err == nil || errors.Is(in.err, io.EOF)):
		return nil, nil
	case in.err != nil && !errors.Is(in.err, io.EOF):
		return nil, in.err
	}
	number, rest, _ := strings.Cut(text, " ")
	for i, c := range w.Choices {
		if number == fmt.Sprint(i+1) || strings.EqualFold(number, c.Value) {
			return &engine.Reply{Choice: c.Value, Text: strings.TrimSpace(rest)}, nil
		}
	}
	return &engine.Reply{Text: text}, nil
}
