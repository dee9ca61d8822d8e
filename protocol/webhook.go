package protocol

// Webhook starts a workflow when another service sends a signed event: on: {webhook: …}.
type Webhook struct {
	Kind    string          `cbor:"kind" json:"kind"`                     // WebhookGitHub, WebhookStripe or WebhookHMAC
	Secrets []string        `cbor:"secrets" json:"secrets"`               // names of declared secrets; a signature by any of them holds
	If      string          `cbor:"if,omitempty" json:"if,omitempty"`     // expression over event: which events start a run; "" is all
	With    []NamedTemplate `cbor:"with,omitempty" json:"with,omitempty"` // the inputs that an event gives, sorted by name
}

// The ways in which services sign.
const (
	WebhookGitHub = "github" // X-Hub-Signature-256 over the body
	WebhookStripe = "stripe" // Stripe-Signature over time and body
	WebhookHMAC   = "hmac"   // Standard Webhooks: webhook-signature over id, time and body
)

// WebhookPath is where the webhook of a workflow takes events, before its name.
const WebhookPath = "/v1/hooks/"

// Trigger is what began a run that neither a person nor a client asked for.
type Trigger struct {
	Kind string `cbor:"kind" json:"kind"` // TriggerSchedule, or the kind of a webhook
	Name string `cbor:"name" json:"name"` // of the workflow whose schedule or webhook it is
	// Delivery is the minute of a firing in RFC 3339, or what the sender of an event calls its delivery. The latter is
	// not signed at GitHub, and tells nothing apart.
	Delivery string `cbor:"delivery,omitempty" json:"delivery,omitempty"`
}

// The kinds of what starts a workflow: TriggerSchedule is that of a Trigger by the clock.
const (
	TriggerSchedule = "schedule"
	TriggerWebhook  = "webhook" // of any kind
)

func (t Trigger) String() string {
	if t.Kind == TriggerSchedule {
		return "the schedule of " + t.Name + ", due " + t.Delivery
	}
	out := "the webhook of " + t.Name + " (" + t.Kind
	if t.Delivery != "" {
		out += ", delivery " + t.Delivery
	}
	return out + ")"
}
