package api

// Trusted is something that is trusted, or waits for that.
type Trusted struct {
	Power   string `json:"power"` // what it lets happen
	CID     string `json:"cid"`   // of the definition, server or provider
	Name    string `json:"name"`
	File    string `json:"file"`
	Trusted bool   `json:"trusted"`
}

// TrustQuestion is what a person is shown of one thing before it is trusted.
type TrustQuestion struct {
	CID, Name, File string
	Does            string   // what its power lets happen
	Change          string   // how it differs from what is trusted; "" where nothing of it is
	Acts            []string // what it does, where there is no change; none where it was shown before
}
