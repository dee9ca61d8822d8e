package lang_test

import (
	"fmt"
	"os"

	"wf/engine/lang"
)

// A workflow is read once; what is wrong with it comes with places and hints.
func Example() {
	src := []byte(`wf: 1
name: greet
inputs: {who: {type: string, default: world}}
roles:
  greet: {set: {text: "Hello, ${{ inputs.who }}!"}}
edges:
  - {from: greet, to: END, when: output.txt != ""}
  - {from: greet, to: FAIL}
`)
	_, problems := lang.Load(src, lang.Options{File: "greet.yaml"})
	lang.Render(os.Stdout, src, problems, false)
	// Output:
	// greet.yaml:7:41: error[WF022]: output has no field "txt"
	//   |
	// 7 |   - {from: greet, to: END, when: output.txt != ""}
	//   |                                         ^^^ did you mean "text"?
	// 1 error, 0 warnings in 1 file
}

// A Program decides edges and renders templates for a Scope.
func ExampleProgram() {
	src := []byte(`wf: 1
name: greet
inputs: {who: {type: string, default: world}}
roles:
  greet: {set: {text: "Hello, ${{ inputs.who }}!"}}
`)
	p, _ := lang.Load(src, lang.Options{})
	inputs, err := p.Inputs(nil)
	if err != nil {
		fmt.Println(err)
	}
	role, _ := p.Workflow.RoleNamed("greet")
	out, err := p.Templates(role, lang.Scope{Inputs: map[string]any{"who": "you"}})
	fmt.Println(string(inputs), string(out.Values), err)
	// Output: {"who":"world"} {"text":"Hello, you!"} <nil>
}
