package webhooksig_test

import (
	"testing"

	"wf/protocol/webhooksig"
)

// The example that the specification's libraries are tested with.
func TestTheVectorOfStandardWebhooks(t *testing.T) {
	key, err := webhooksig.Key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const id, at, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := webhooksig.Sign(key, id, at, []byte(body)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for header, good := range map[string]bool{want: true, "v1,AAAA " + want: true, "v2," + want[3:]: false, "": false, want[:20]: false} {
		if webhooksig.Verify(key, id, at, header, []byte(body)) != good {
			t.Errorf("%q: good is not %v", header, good)
		}
	}
	if webhooksig.Verify(key, id, "1614265331", want, []byte(body)) || webhooksig.Verify(key, id, at, want, []byte(body+" ")) {
		t.Error("another time, or body, has the same signature")
	}
}

func TestASecretIsBase64BehindItsPrefix(t *testing.T) {
	if key, err := webhooksig.Key("plain"); err != nil || string(key) != "plain" {
		t.Error(key, err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_!!"} {
		if _, err := webhooksig.Key(bad); err == nil {
			t.Errorf("%q is a secret", bad)
		}
	}
}
