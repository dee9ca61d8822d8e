// Command model gives the agents of a workflow a model and a tool of this program: any llms.Model
// of langchaingo will do, here one that follows a rule and needs no key.
//
//	go run ./examples/model
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit"
	"wf/agentkit/sandbox"
	"wf/agentkit/tool"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

const workflow = `
wf: 1
name: stock
defaults: {model: house/clerk, timeout: 1m}
limits: {steps: 5}
roles:
  clerk:
    prompt: You answer how many pieces there are.
    tools: [stock]
    output: {type: object, required: [pieces], properties: {pieces: {type: integer}}}
edges:
  - {from: START, to: clerk, prompt: How many screws?}
  - {from: clerk, to: END}
outputs: {pieces: "${{ output.pieces }}"}
`

// A clerk asks the tool once, and answers with what it said. A real model sends the messages to a
// server, and the tools that llms.WithTools put into the options.
type clerk struct{}

func (clerk) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	last := messages[len(messages)-1]
	choice := &llms.ContentChoice{StopReason: "tool_calls", ToolCalls: []llms.ToolCall{
		{ID: "call-1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "stock", Arguments: `{"name":"screw"}`}},
	}}
	if said, ok := last.Parts[0].(llms.ToolCallResponse); ok {
		choice = &llms.ContentChoice{StopReason: "stop", Content: "---\npieces: " + said.Content + "\n---\nAs counted."}
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}

func (c clerk) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, c, prompt, options...)
}

// stock is a tool that roles name. ReadOnly has a call that was cut off repeated.
var stock = tool.Tool{
	Name: "stock", Description: "Tells how many pieces of a thing there are.", ReadOnly: true,
	Parameters: protocol.JSON(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
	Run: func(_ context.Context, _ tool.Workspace, args json.RawMessage) (tool.Result, error) {
		var of struct{ Name string }
		if err := tool.Decode(args, &of, "name"); err != nil {
			return tool.Result{Content: err.Error(), IsError: true}, nil // the model reads it
		}
		return tool.Result{Content: fmt.Sprint(map[string]int{"screw": 42}[of.Name])}, nil
	},
}

func main() {
	sandbox.Main() // before all else, in a program with agents that may have the tool shell
	dir, err := os.MkdirTemp("", "wf-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) // a program of yours keeps its store
	if err := ask(context.Background(), dir); err != nil {
		log.Print(err)
	}
}

// ask runs the workflow in the store of dir.
func ask(ctx context.Context, dir string) (err error) {
	store, err := cas.Open(ctx, dir, cas.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	program, diagnostics := lang.Load([]byte(workflow), lang.Options{File: "stock.yaml"})
	if program == nil {
		return fmt.Errorf("the workflow: %v", diagnostics)
	}
	models := agentkit.Standard() // openai/…, anthropic/…, script/…, tape/…
	models["house"] = func(name, _ string) (llms.Model, error) { return clerk{}, nil }
	agent := agentkit.Agent{Models: models.Open, Tools: []tool.Tool{stock}}
	e := &engine.Engine{Store: store, Performers: map[protocol.Action]roles.Performer{protocol.ActPrompt: agent},
		Watch: func(n api.Update) {
			if n.Entry != nil && n.Step != "" {
				fmt.Println(n.Step, n.Data.EventType())
			}
		}}
	run, _, err := e.Begin(ctx, engine.Launch{Program: program, Source: []byte(workflow), Inputs: protocol.JSON("{}"), Workspace: dir})
	if err != nil {
		return err
	}
	if _, err := e.Drive(ctx, run, engine.DriveOptions{}); err != nil {
		return err
	}
	view, err := e.View(ctx, run)
	if err == nil {
		fmt.Println(view.Status, string(view.Outputs))
	}
	return err
}
