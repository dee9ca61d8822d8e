package api

import (
	"encoding/json"

	"wf/protocol"
)

// Prompt is what an agent was sent first, built again from records alone: wf.messages/v1.
type Prompt struct {
	Schema   string             `json:"schema"`
	Digest   CID                `json:"digest"` // as in the prompt event
	Messages []protocol.Message `json:"messages"`
	Tools    json.RawMessage    `json:"tools"` // a list
	// ReusedFrom is RUN:STEP whose result was taken: nothing was sent then. Left out where the visit was performed.
	ReusedFrom string `json:"reused_from,omitempty"`
}

// Messages is a Prompt with what the provider had seen of it before.
type Messages struct {
	Prompt
	Resumes      *string `json:"resumes"`       // the visit whose conversation goes on, or null
	SharedPrefix int     `json:"shared_prefix"` // leading messages that were sent with it, byte for byte
	Seam         *Seam   `json:"seam,omitempty"`
	// Command is what a role that runs a command was given: no model was asked.
	Command *Command `json:"command,omitempty"`
}

// Seam is where what an earlier request had ends within a prompt.
type Seam struct {
	Step   string `json:"step"`    // of the earlier request
	Before int    `json:"before"`  // index of the message that it is before
	Shared int    `json:"shared"`  // leading bytes that are the same
	Bytes  int    `json:"bytes"`   // of the prompt
	Part   string `json:"differs"` // what differs: tools, system, history; "" where all of the earlier request is in it
}

// Command is what a command was given.
type Command struct {
	Run        string                   `json:"run"`
	Dir        string                   `json:"dir"`
	Env        []protocol.NamedTemplate `json:"env"`
	Stdin      *protocol.Stdin          `json:"stdin,omitempty"` // what it reads in place of its turn
	EdgePrompt string                   `json:"edge_prompt"`
	Item       protocol.JSON            `json:"item,omitempty"` // of a fan-out: the value of the item
}
