package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

const greetYAML = `
wf: 1
name: greet
inputs:
  name: {type: string, required: true}
roles:
  greet: {set: {text: "Hello, ${{ inputs.name }}."}}
  count: {set: {runes: "${{ len(output.text) }}"}}
outputs:
  text: ${{ steps.greet.output.text }}
  runes: ${{ steps.count.output.runes }}
`

// Load a workflow, run it in a store, and read what it concluded.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "wf")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := cas.Open(ctx, filepath.Join(dir, ".wf"), cas.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	program, diagnostics := lang.Load([]byte(greetYAML), lang.Options{File: "greet.yaml"})
	if program == nil {
		lang.Render(os.Stderr, []byte(greetYAML), diagnostics, false)
		return
	}
	inputs, err := program.Inputs(map[string]any{"name": "Ada"})
	if err != nil {
		log.Fatal(err)
	}
	e := &engine.Engine{Store: store, Performers: map[protocol.Action]roles.Performer{protocol.ActSet: roles.Set{}}}
	run, _, err := e.Begin(ctx, engine.Launch{Program: program, Source: []byte(greetYAML), Inputs: inputs})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := e.Drive(ctx, run, engine.DriveOptions{}); err != nil {
		log.Fatal(err)
	}
	v, err := e.View(ctx, run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v.Status, string(v.Outputs))

	// Replay the journal: every event, in order, under its hash.
	for x, err := range store.After(ctx, run, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(strings.TrimSpace(fmt.Sprint(x.Seq, " ", x.Type, " ", x.StepName())))
	}

	// Read and hash everything again.
	report, err := cas.Verify(ctx, store, cas.VerifyOptions{Run: run})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("verified:", report.OK)
	// Output:
	// done {"runes":11,"text":"Hello, Ada."}
	// 1 run_started
	// 2 step_started greet#1
	// 3 step_completed greet#1
	// 4 step_started count#1
	// 5 step_completed count#1
	// 6 done
	// verified: true
}

// shouter performs run roles without a shell: it shouts the command.
type shouter struct{}

func (shouter) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	text := strings.ToUpper(turn.Role.Run)
	if err := emit(ctx, protocol.TextSaid{Content: protocol.NewText(text)}); err != nil {
		return protocol.Conclusion{}, err
	}
	return protocol.Conclusion{Text: &text, Data: protocol.JSON(`{"exit_code":0}`)}, nil
}

// Give an action a Performer of your own: it gets the turn, says what it does as events, and
// returns a conclusion.
func ExampleEngine_performer() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "wf")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := cas.Open(ctx, dir, cas.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	source := []byte("wf: 1\nname: shout\nroles:\n  a: {run: hello}\noutputs: {said: \"${{ steps.a.text }}\"}\n")
	program, _ := lang.Load(source, lang.Options{})
	e := &engine.Engine{Store: store, Performers: map[protocol.Action]roles.Performer{protocol.ActRun: shouter{}}}
	run, _, err := e.Begin(ctx, engine.Launch{Program: program, Source: source, Inputs: protocol.JSON("{}")})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := e.Drive(ctx, run, engine.DriveOptions{}); err != nil {
		log.Fatal(err)
	}
	v, err := e.View(ctx, run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(v.Outputs))
	// Output: {"said":"HELLO"}
}
