package api

// Address is where a server listens.
type Address struct {
	URL  string `json:"url"`  // unix:PATH, http:// or https://
	Open string `json:"open"` // with a one-time code, for a browser; "" for a socket, and where no token has all scopes
}

// Serving is wf.serving/v1: the one line that a daemon writes for programs, once it listens.
type Serving struct {
	Schema    string    `json:"schema"`
	PID       int       `json:"pid"`
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Store     string    `json:"store"`
	Listen    []Address `json:"listen"`
	TokenFile string    `json:"token_file"` // "" where only sockets listen
	Workflows []string  `json:"workflows"`  // directories
}

// HubServing is wf.hub/v1: the one line that a hub writes for programs, once it listens.
type HubServing struct {
	Schema     string    `json:"schema"`
	PID        int       `json:"pid"`
	Name       string    `json:"name"`
	Version    string    `json:"version"`
	Data       string    `json:"data"`
	Listen     []Address `json:"listen"`
	TokenFile  string    `json:"token_file"`
	AgentToken string    `json:"agent_token_file"`
}

// Code is wf.code/v1: what a browser is opened with, once.
type Code struct {
	Schema  string   `json:"schema"`
	Code    string   `json:"code"`
	Expires Time     `json:"expires"`
	URLs    []string `json:"urls"` // addresses to open, with the code in the fragment
}
