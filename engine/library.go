package engine

import (
	"fmt"
	"sync"

	"wf/cas"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
)

// Reader fetches an immutable block.
type Reader func(protocol.Link) ([]byte, error)

// library compiles each pinned definition once. Its zero value is ready; it is safe for
// concurrent use.
type library struct {
	programs sync.Map // definition → *lang.Program
	starts   sync.Map // Start → *rules.Opened
	agents   sync.Map // run that calls others → whether it has an agent
}

// program compiles the canonical definition named by l.
func (lib *library) program(l protocol.Link, read Reader) (*lang.Program, error) {
	if p, ok := lib.programs.Load(l); ok {
		return p.(*lang.Program), nil
	}
	w, err := workflow(l, read)
	if err != nil {
		return nil, err
	}
	p, err := lang.Compile(w, func(child protocol.Link) (*protocol.Workflow, error) { return workflow(child, read) })
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", l.Short(), err)
	}
	lib.programs.Store(l, p)
	return p, nil
}

// open reads a Start and its definition. A Start made by newer rules is an error wrapping
// protocol.ErrSemantics.
func (lib *library) open(l protocol.Link, read Reader) (*rules.Opened, error) {
	if o, ok := lib.starts.Load(l); ok {
		return o.(*rules.Opened), nil
	}
	var st protocol.Start
	if err := decode(read, l, &st); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.Short(), err)
	}
	if st.Semantics > protocol.Semantics || st.Format > protocol.Format {
		return nil, fmt.Errorf("start %s needs semantics %d and format %d, this wf has %d and %d: %w",
			l.Short(), st.Semantics, st.Format, protocol.Semantics, protocol.Format, protocol.ErrSemantics)
	}
	p, err := lib.program(st.Workflow, read)
	if err != nil {
		return nil, err
	}
	o := &rules.Opened{Start: st, Program: p, Raw: protocol.JSON("{}")}
	if st.Inputs.Defined() {
		if o.Raw, err = protocol.PayloadBytes(read, st.Inputs); err != nil {
			return nil, fmt.Errorf("inputs of start %s: %w", l.Short(), err)
		}
	}
	if o.Inputs, err = lang.DecodeObject(o.Raw); err != nil {
		return nil, fmt.Errorf("inputs of start %s: %w", l.Short(), err)
	}
	lib.starts.Store(l, o)
	return o, nil
}

func workflow(l protocol.Link, read Reader) (*protocol.Workflow, error) {
	w := &protocol.Workflow{}
	if err := decode(read, l, w); err != nil {
		return nil, fmt.Errorf("definition %s: %w", l.Short(), err)
	}
	return w, nil
}

func decode(read Reader, l protocol.Link, into any) error {
	b, err := read(l)
	if err != nil {
		return err
	}
	return cas.Decode(b, into)
}
