package protocol_test

import (
	"testing"

	"wf/protocol"
)

// The example that the specification's libraries are tested with.
func TestTheVectorOfStandardWebhooks(t *testing.T) {
	key, err := protocol.WebhookKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const id, at, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`
	if got, want := protocol.SignWebhook(key, id, at, []byte(body)), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestASecretIsBase64BehindItsPrefix(t *testing.T) {
	if key, err := protocol.WebhookKey("plain"); err != nil || string(key) != "plain" {
		t.Error(key, err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_!!"} {
		if _, err := protocol.WebhookKey(bad); err == nil {
			t.Errorf("%q is a secret", bad)
		}
	}
}
