package api

// Models is wf.models/v1.
type Models struct {
	Schema    string        `json:"schema"`
	Workflow  string        `json:"workflow,omitempty"`
	Providers []Provider    `json:"providers"`
	Default   []string      `json:"default"`
	Roles     []RoleModels  `json:"roles"`
	Prices    string        `json:"prices"` // date of the table
	Found     []FoundModels `json:"found"`
}

// Provider is where models come from.
type Provider struct {
	Name    string `json:"name"`
	Wire    string `json:"wire"`
	BaseURL string `json:"base_url"`
	KeyEnv  string `json:"key_env"`
	KeySet  bool   `json:"key_set"`
	Context int    `json:"context"`
	Engine  string `json:"engine"`
	From    string `json:"from"`    // file of the config, "" for this binary
	Blocked string `json:"blocked"` // why it cannot be used before wf trust
}

// RoleModels are the models of an agent, in the order in which they are tried.
type RoleModels struct {
	Role   string   `json:"role"`
	Models []string `json:"models"`
	Source string   `json:"source"`
	Detail string   `json:"detail"`
	Text   string   `json:"-"` // all of it in a line, for people
}

// FoundModels is a server that answered when it was asked, and the models that it has.
type FoundModels struct {
	BaseURL string   `json:"base_url"`
	Models  []string `json:"models"`
}
