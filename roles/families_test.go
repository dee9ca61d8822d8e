package roles

import (
	"strings"
	"testing"
)

// families are keys with a prefix, or a form, that scanners of repositories know, by the kind that they are hidden as.
func families() map[string][]string {
	mixed := func(n int) string { return chars("aZ3k-Q9x_B7mT1wR5pLd0", n-1) + "A" }
	all := map[string][]string{
		"adobe_secret":      {"p8e-" + alphanumeric(32)},
		"alibaba_key_id":    {"LTAI" + alphanumeric(20), "LTAI" + alphanumeric(12)},
		"aws_key_id":        {"ABIA" + capital(16), "ACCA" + capital(16), "A3TX" + capital(16)},
		"clickhouse_key":    {"4b1d" + alphanumeric(38)},
		"clojars_token":     {"CLOJARS_" + hexadecimal(60)},
		"defined_token":     {"dnkey-" + mixed(26) + "-" + mixed(52)},
		"dropbox_token":     {"sl." + mixed(135), "sl.u." + mixed(1300)},
		"duffel_token":      {"duffel_live_" + mixed(43), "duffel_test_" + mixed(42) + "="},
		"dynatrace_token":   {"dt0c01." + strings.ToLower(capital(24)) + "." + strings.ToLower(capital(64))},
		"easypost_key":      {"EZAK" + alphanumeric(54), "EZTK" + alphanumeric(54)},
		"encoded_key":       {std("eyJ" + alphanumeric(33) + ".eyJ" + alphanumeric(600) + "." + alphanumeric(43))},
		"facebook_token":    {"EAAM" + alphanumeric(180), "EAAC" + alphanumeric(120)},
		"flutterwave_key":   {"FLWSECK-" + hexadecimal(32) + "-X", "FLWSECK_TEST-" + hexadecimal(32) + "-X", "FLWSECK_TEST-" + hexadecimal(12), "FLWPUBK_TEST-" + hexadecimal(32) + "-X"},
		"frameio_token":     {"fio-u-" + mixed(64)},
		"gocardless_token":  {"live_" + mixed(40)},
		"grafana_token":     {"eyJrIjoi" + alphanumeric(80) + "==", "glc_" + alphanumeric(40) + "+/" + alphanumeric(40) + "="},
		"harness_key":       {"pat." + alphanumeric(22) + "." + hexadecimal(24) + "." + alphanumeric(20), "sat." + alphanumeric(22) + "." + hexadecimal(24) + "." + alphanumeric(20)},
		"huggingface_token": {"api_org_" + alphanumeric(34)},
		"infracost_key":     {"ico-" + alphanumeric(32)},
		"intra42_secret":    {"s-s4t2ud-" + hexadecimal(64), "s-s4t2af-" + hexadecimal(64)},
		"jwt":               {"eyAi" + alphanumeric(33) + ".eyAi" + alphanumeric(60) + "." + alphanumeric(43)},
		"lob_key":           {"live_" + hexadecimal(35), "test_" + hexadecimal(35), "live_pub_" + hexadecimal(31), "test_pub_" + hexadecimal(31)},
		"mailgun_key":       {"pubkey-" + hexadecimal(32)},
		"mapbox_token":      {"pk.eyJ" + alphanumeric(70) + "." + alphanumeric(22), "tk.eyJ" + alphanumeric(70) + "." + alphanumeric(22)},
		"newrelic_key":      {"NRII-" + mixed(32), "NRJS-" + hexadecimal(19)},
		"octopus_key":       {"API-" + capital(26)},
		"onepassword_key":   {"A3-" + capital(6) + "-" + capital(11) + "-" + capital(5) + "-" + capital(5) + "-" + capital(5), "A3-" + capital(6) + "-" + capital(6) + "-" + capital(5) + "-" + capital(5) + "-" + capital(5) + "-" + capital(5)},
		"openshift_token":   {"sha256~" + mixed(43)},
		"plaid_token":       {"access-sandbox-" + uuidLike(), "access-development-" + uuidLike(), "access-production-" + uuidLike()},
		"planetscale_token": {"pscale_tkn_" + mixed(20) + "=" + mixed(20)},
		"readme_key":        {"rdme_" + alphanumeric(70)},
		"scalingo_token":    {"tk-us-" + mixed(48)},
		"settlemint_token":  {"sm_aat_" + alphanumeric(16), "sm_pat_" + alphanumeric(16), "sm_sat_" + alphanumeric(16)},
		"shippo_token":      {"shippo_live_" + hexadecimal(40), "shippo_test_" + hexadecimal(40)},
		"shopify_token":     {"shpat_" + strings.ToUpper(hexadecimal(32))},
		"slack_token":       {"xoxo-123456789-123456789-123456789-" + hexadecimal(12), "xoxa-2-" + alphanumeric(16)},
		"slack_webhook":     {"hooks.slack.com/workflows/T" + capital(10) + "/A" + capital(10) + "/123456789012345678/" + alphanumeric(24), "hooks.slack.com/triggers/E" + capital(10) + "/1234567890123/" + hexadecimal(32)},
		"square_token":      {"sq0atp-" + mixed(60)},
		"stripe_key":        {"sk_prod_" + alphanumeric(24), "rk_prod_" + alphanumeric(99)},
		"teams_webhook":     {"webhook.office.com/webhookb2/" + uuidLike() + "@" + uuidLike() + "/IncomingWebhook/" + hexadecimal(32) + "/" + uuidLike()},
		"terraform_token":   {"atlasv1." + mixed(30) + "=" + mixed(36)},
		"twitter_token":     {strings.Repeat("A", 22) + alphanumeric(40) + "%2B" + alphanumeric(8) + "%3D" + alphanumeric(40)},
		"typeform_token":    {"tfp_" + mixed(44) + "_" + mixed(14)},
		"vault_token":       {"s." + chars("a3Z8kQ2", 24)},
		"yandex_key":        {"AQVN" + mixed(36)},
		"yandex_token":      {"t1." + mixed(30) + "." + mixed(86), "t1." + mixed(30) + "==." + mixed(86) + "=="},
	}
	for _, prefix := range []string{"sc_", "ext_", "scauth_", "authress_"} {
		all["authress_key"] = append(all["authress_key"], prefix+alphanumeric(20)+"."+alphanumeric(5)+".acc-"+alphanumeric(20)+"."+mixed(90))
	}
	return all
}

// The first characters of a key, and words that begin as one does, are shown.
func TestWhatOnlyBeginsAsAKeyIsShown(t *testing.T) {
	for _, tokens := range families() {
		for _, token := range tokens {
			for _, text := range []string{token[:min(len(token), 14)], "x" + token[:len(token)*2/3] + "?"} {
				if got := new(Redactor).String(text); got != text {
					t.Errorf("%q gives %q", text, got)
				}
			}
		}
	}
	for _, text := range []string{
		"sha256:" + hexadecimal(64), "sha256-" + alphanumeric(43) + "=", "sha512-" + alphanumeric(86) + "==", "git " + hexadecimal(40) + " " + hexadecimal(7), "uuid " + uuidLike(),
		"bafyrei" + strings.ToLower(capital(52)), "zdpuA" + alphanumeric(44), "h1:" + alphanumeric(43) + "=", "md5 " + hexadecimal(32), strings.ToUpper(hexadecimal(64)),
		"data:font/woff2;base64,d09GMgABAAAAA" + alphanumeric(400), "\n" + strings.Repeat(alphanumeric(76)+"\n", 40), strings.Repeat("A", 22) + alphanumeric(90), strings.Repeat("A", 400) + "==",
		"s.handleStreamFrameVersion", "s.parseHTTP2FrameHeader1V", "t1.Sub(t0)", "pat.Match.String", "sl.Elements", "test_name_of_a_case_with_40_characters_2_", "live_reload", "access-control-allow-origin",
		"api_org_id", "ext_authz.yaml", "sc_" + alphanumeric(20), "A3-size", "API-2024-REFERENCE", "LTAI", "EZAKIEL", "ico-social-media-facebook-2x", "tk-us-east-1", "duffel_bag_live_test", "rdme_" + alphanumeric(20),
		"shippo_test_mode", "sm_pat_name", "p8e-", "4b1d" + hexadecimal(36), "hooks.slack.com/workflows/", "webhook.office.com/webhookb2/", "NRJS-" + hexadecimal(12), "SK" + strings.ToUpper(hexadecimal(12)), "_gitlab_session=", "sha256~",
	} {
		if got := new(Redactor).String(text); got != text {
			t.Errorf("%q gives %q", text, got)
		}
	}
}
