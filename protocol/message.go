package protocol

// Roles of a message.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one message of a conversation, in the order and form in which it is hashed.
type Message struct {
	Role       string        `json:"role"`
	Content    string        `json:"content"`
	ToolCalls  []CallMessage `json:"tool_calls,omitempty"`
	ToolCallID string        `json:"tool_call_id,omitempty"`
	IsError    bool          `json:"is_error,omitempty"`
	// Opaque is a provider's own block, for example signed thinking; sent back verbatim
	// inside the visit, never part of P_k.
	Opaque string `json:"opaque,omitempty"`
}

// CallMessage is a tool call of an assistant message; Arguments is raw JSON as written by
// the model.
type CallMessage struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is a tool as it is offered to a model; Parameters is a JSON Schema.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  JSON   `json:"parameters"`
}
