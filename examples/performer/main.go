// Command performer embeds wf in a Go program: the steps of a workflow are functions of this
// program, and each of them is durable before the next begins.
//
//	go run ./examples/performer
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"

	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

const workflow = `
wf: 1
name: order
defaults: {timeout: 1m}
inputs: {pieces: {type: integer, required: true}}
roles:
  price: {run: price, env: {PIECES: "${{ inputs.pieces }}"}, output: {type: object, required: [cents], properties: {cents: {type: integer}}}}
  charge:
    run: charge # the service may be away
    env: {CENTS: "${{ output.cents }}"}
    retry: {attempts: 2, delay: 1ms}
    output: {type: object, required: [receipt], properties: {receipt: {type: string}}}
outputs: {receipt: "${{ output.receipt }}", cents: "${{ steps.price.output.cents }}"}
`

// A function performs the roles that name it in run:. key is the same for all attempts of a step.
type function func(ctx context.Context, key string, env map[string]string) (any, error)

// functions is a roles.Performer.
type functions map[string]function

// Perform calls a function. Its error is an outcome of the step, which the role may try again.
func (f functions) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	call, found := f[turn.Role.Run]
	if !found {
		return protocol.Conclusion{}, fmt.Errorf("step %s: there is no function %q", turn.Step, turn.Role.Run)
	}
	out, err := call(ctx, turn.Key, turn.Env)
	switch {
	case ctx.Err() != nil:
		return protocol.Conclusion{}, context.Cause(ctx) // stopped: performed again by the next Drive
	case err != nil:
		return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "function", Message: err.Error()}, Class: "server_error", Err: err}
	}
	data, err := json.Marshal(out)
	return protocol.Conclusion{Data: data}, err
}

func price(_ context.Context, _ string, env map[string]string) (any, error) {
	pieces, err := strconv.Atoi(env["PIECES"])
	return map[string]int{"cents": 250 * pieces}, err
}

// charging is a service that is away at first.
func charging() function {
	requests := 0
	return func(_ context.Context, key string, env map[string]string) (any, error) {
		if requests++; requests == 1 {
			return nil, errors.New("the bank is closed")
		}
		return map[string]string{"receipt": fmt.Sprintf("%s cents, with a key of %d characters", env["CENTS"], len(key))}, nil
	}
}

func main() {
	dir, err := os.MkdirTemp("", "wf-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) // a program of yours keeps its store
	if err := order(context.Background(), dir); err != nil {
		log.Print(err)
	}
}

// order runs the workflow in the store of dir.
func order(ctx context.Context, dir string) (err error) {
	store, err := cas.Open(ctx, dir, cas.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	program, diagnostics := lang.Load([]byte(workflow), lang.Options{File: "order.yaml"})
	if program == nil {
		return fmt.Errorf("the workflow: %v", diagnostics)
	}
	inputs, err := program.Inputs(map[string]any{"pieces": 3})
	if err != nil {
		return err
	}
	e := &engine.Engine{Store: store, Performers: map[protocol.Action]roles.Performer{protocol.ActRun: functions{"price": price, "charge": charging()}}}
	run, _, err := e.Begin(ctx, engine.Launch{Program: program, Source: []byte(workflow), Inputs: inputs})
	if err != nil {
		return err
	}
	if _, err := e.Drive(ctx, run, engine.DriveOptions{}); err != nil { // goes on with a run after a crash, too
		return err
	}
	view, err := e.View(ctx, run)
	if err != nil {
		return err
	}
	for _, step := range view.Steps {
		fmt.Println(step.ID, step.Status, "in", len(step.Attempts), "attempts")
	}
	_, err = fmt.Println(view.Status, string(view.Outputs))
	return err
}
