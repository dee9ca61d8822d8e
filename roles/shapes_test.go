package roles

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// chars are n characters that look drawn at random from an alphabet.
func chars(alphabet string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte(alphabet[(i*i*7+i*13+5)%len(alphabet)])
	}
	return b.String()
}

func alphanumeric(n int) string { return chars("aZ3kQ9xB7mT1wR5pLd0", n) }
func hexadecimal(n int) string  { return chars("0a1b2c3d4e5f6789", n) }
func capital(n int) string      { return chars("ABC2DEF3GHJ4KLM5NPQ6", n) }

func uuidLike() string {
	h := hexadecimal(32)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func std(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// inBase64Lines encodes a text, in lines of so many characters, or in one for 0.
func inBase64Lines(text string, width int) string {
	s := base64.StdEncoding.EncodeToString([]byte(text))
	var lines []string
	for width > 0 && len(s) > width {
		lines = append(lines, s[:width])
		s = s[width:]
	}
	return strings.Join(append(lines, s), "\n")
}

func pemKey(kind string, lines int) string {
	return "-----BEGIN " + kind + "-----\n" + strings.Repeat(alphanumeric(62)+"+/\n", lines) + "Zm9vYmFy==\n-----END " + kind + "-----"
}

// samples are texts with a key, and how they look without it.
func samples() map[string]string {
	all := map[string]string{}
	for kind, tokens := range map[string][]string{
		"anthropic_key":  {"sk-ant-api03-" + alphanumeric(90) + "-_AA"},
		"openai_key":     {"sk-proj-" + alphanumeric(40) + "_" + alphanumeric(20), "sk-svcacct-" + alphanumeric(50)},
		"openrouter_key": {"sk-or-v1-" + hexadecimal(64)},
		"encoded_key": {std("ghp_" + alphanumeric(36)), std("gho_" + alphanumeric(36) + "\n"), std("ghs_" + alphanumeric(36)), std("github_pat_" + alphanumeric(70)),
			std("glpat-" + alphanumeric(20)), std("sk-ant-api03-" + alphanumeric(90)), std("sk-proj-" + alphanumeric(60)), std("xoxb-" + alphanumeric(40)), std("npm_" + alphanumeric(36))},
		"api_key":           {"sk-" + alphanumeric(48), "sk-" + hexadecimal(32)},
		"groq_key":          {"gsk_" + alphanumeric(52)},
		"xai_key":           {"xai-" + alphanumeric(80)},
		"replicate_token":   {"r8_" + alphanumeric(37)},
		"perplexity_key":    {"pplx-" + alphanumeric(48)},
		"huggingface_token": {"hf_" + alphanumeric(34)},
		"github_token":      {"ghp_" + alphanumeric(36), "gho_" + alphanumeric(36), "ghs_" + alphanumeric(36), "github_pat_" + alphanumeric(22) + "_" + alphanumeric(59)},
		"gitlab_token": {"glpat-" + alphanumeric(20), "glpat-" + alphanumeric(27) + ".01." + alphanumeric(9), "glft-" + alphanumeric(20), "glrt-t1_" + alphanumeric(20),
			"glsoat-" + alphanumeric(20), "glagent-" + alphanumeric(50), "GR1348941" + alphanumeric(20)},
		"aws_key_id":         {"AKIA" + capital(16), "ASIA" + capital(16)},
		"google_key":         {"AIza" + alphanumeric(33) + "-_"},
		"google_secret":      {"GOCSPX-" + alphanumeric(28)},
		"google_token":       {"ya29." + alphanumeric(120)},
		"slack_token":        {"xoxb-123456789012-1234567890123-" + alphanumeric(24), "xapp-1-A0123-456-" + hexadecimal(64)},
		"slack_webhook":      {"hooks.slack.com/services/T" + capital(10) + "/B" + capital(10) + "/" + alphanumeric(24)},
		"stripe_key":         {"sk_live_" + alphanumeric(24), "rk_live_" + alphanumeric(24)},
		"webhook_secret":     {"whsec_" + alphanumeric(30) + "+/", "whsec_" + alphanumeric(43) + "="},
		"npm_token":          {"npm_" + alphanumeric(36)},
		"pypi_token":         {"pypi-AgEIcHlwaS5vcmc" + alphanumeric(100)},
		"rubygems_key":       {"rubygems_" + hexadecimal(48)},
		"sendgrid_key":       {"SG." + alphanumeric(22) + "." + alphanumeric(43)},
		"mailgun_key":        {"key-" + hexadecimal(32)},
		"twilio_key":         {"SK" + hexadecimal(32)},
		"digitalocean_token": {"dop_v1_" + hexadecimal(64)},
		"vault_token":        {"hvs." + alphanumeric(90)},
		"terraform_token":    {"atlasv1." + alphanumeric(67)},
		"heroku_key":         {"HRKU-AA" + alphanumeric(58)},
		"databricks_token":   {"dapi" + hexadecimal(32)},
		"postman_key":        {"PMAK-" + hexadecimal(24) + "-" + hexadecimal(34)},
		"linear_key":         {"lin_api_" + alphanumeric(40)},
		"shopify_token":      {"shpat_" + hexadecimal(32)},
		"docker_token":       {"dckr_pat_" + alphanumeric(27)},
		"grafana_token":      {"glsa_" + alphanumeric(32) + "_" + hexadecimal(8)},
		"newrelic_key":       {"NRAK-" + capital(27)},
		"atlassian_token":    {"ATATT3" + alphanumeric(180)},
		"notion_token":       {"ntn_" + alphanumeric(46)},
		"figma_token":        {"figd_" + alphanumeric(40)},
		"supabase_key":       {"sbp_" + hexadecimal(40)},
		"langfuse_key":       {"sk-lf-" + uuidLike(), "pk-lf-" + uuidLike()},
		"elevenlabs_key":     {"sk_" + hexadecimal(48)},
		"mapbox_token":       {"sk.eyJ" + alphanumeric(70) + "." + alphanumeric(22)},
		"nvidia_key":         {"nvapi-" + alphanumeric(62) + "-_"},
		"tavily_key":         {"tvly-" + alphanumeric(32), "tvly-dev-" + alphanumeric(32)},
		"pinecone_key":       {"pcsk_" + alphanumeric(6) + "_" + alphanumeric(63)},
		"langsmith_key":      {"lsv2_pt_" + hexadecimal(32) + "_" + hexadecimal(10), "lsv2_sk_" + hexadecimal(32) + "_" + hexadecimal(10)},
		"cerebras_key":       {"csk-" + alphanumeric(48)},
		"together_key":       {"tgp_v1_" + alphanumeric(43)},
		"fireworks_key":      {"fw_" + alphanumeric(24)},
		"voyage_key":         {"pa-" + alphanumeric(43)},
		"jina_key":           {"jina_" + alphanumeric(60)},
		"firecrawl_key":      {"fc-" + hexadecimal(32)},
		"e2b_key":            {"e2b_" + hexadecimal(40)},
		"apify_token":        {"apify_api_" + alphanumeric(36)},
		"wandb_key":          {"wandb_v1_" + alphanumeric(77)},
		"bedrock_key":        {"ABSK" + alphanumeric(128) + "+/==", "bedrock-api-key-" + alphanumeric(200)},
		"cloudflare_token":   {"cfut_" + alphanumeric(48), "cfat_" + alphanumeric(48), "v1.0-" + hexadecimal(24) + "-" + hexadecimal(146)},
		"doppler_token":      {"dp.pt." + alphanumeric(43), "dp.st.prd_eu." + alphanumeric(43), "dp.ct." + alphanumeric(40)},
		"fly_token":          {"fm2_" + alphanumeric(160) + "+/==", "fo1_" + alphanumeric(43)},
		"pulumi_token":       {"pul-" + hexadecimal(40)},
		"sentry_token":       {"sntrys_eyJ" + alphanumeric(90) + "==_" + alphanumeric(43), "sntryu_" + hexadecimal(64)},
		"square_token":       {"EAAA" + alphanumeric(58) + "-_", "sq0atp-" + alphanumeric(22), "sq0csp-" + alphanumeric(43)},
		"tailscale_key":      {"tskey-auth-" + alphanumeric(17) + "-" + alphanumeric(32)},
		"planetscale_token":  {"pscale_tkn_" + alphanumeric(43), "pscale_pw_" + alphanumeric(43)},
		"neon_key":           {"napi_" + alphanumeric(64)},
		"netlify_token":      {"nfp_" + alphanumeric(36)},
		"vercel_token":       {"vck_" + alphanumeric(56)},
		"render_key":         {"rnd_" + alphanumeric(32)},
		"resend_key":         {"re_" + alphanumeric(8) + "_" + alphanumeric(24)},
		"brevo_key":          {"xkeysib-" + hexadecimal(64) + "-" + alphanumeric(16)},
		"hubspot_token":      {"pat-na1-" + uuidLike()},
		"airtable_token":     {"pat" + alphanumeric(14) + "." + hexadecimal(64)},
		"sonar_token":        {"squ_" + hexadecimal(40)},
		"sourcegraph_token":  {"sgp_" + hexadecimal(16) + "_" + hexadecimal(40), "sgp_" + hexadecimal(40)},
		"circleci_token":     {"CCIPAT_" + alphanumeric(22) + "_" + hexadecimal(40)},
		"buildkite_token":    {"bkua_" + hexadecimal(40)},
		"dynatrace_token":    {"dt0c01." + capital(24) + "." + capital(64)},
		"onepassword_token":  {"ops_eyJ" + alphanumeric(400)},
		"contentful_token":   {"CFPAT-" + alphanumeric(43)},
		"crates_token":       {"cio" + alphanumeric(32)},
		"posthog_key":        {"phx_" + alphanumeric(43)},
		"prefect_key":        {"pnu_" + alphanumeric(36)},
		"jfrog_token":        {"AKCp" + alphanumeric(69)},
		"clickup_token":      {"pk_12345678_" + capital(32)},
		"age_key":            {"AGE-SECRET-KEY-1" + capital(58)},
		"jwt":                {"eyJ" + alphanumeric(33) + ".eyJ" + alphanumeric(60) + "." + alphanumeric(43)},
		"discord_token":      {"MTA" + alphanumeric(23) + "." + alphanumeric(6) + "." + alphanumeric(38)},
		"private_key": {pemKey("RSA PRIVATE KEY", 20), pemKey("OPENSSH PRIVATE KEY", 5), pemKey("PGP PRIVATE KEY BLOCK", 30),
			strings.ReplaceAll(pemKey("PRIVATE KEY", 20), "\n", `\n`),
			strings.ReplaceAll(pemKey("EC PRIVATE KEY", 3), "\n", "\n\" +\n\t\""),
			numbered(pemKey("RSA PRIVATE KEY", 20), "%6d\t"), numbered(pemKey("PRIVATE KEY", 12), "%d:"), numbered(pemKey("PRIVATE KEY", 12), "%d-"),
			strings.ReplaceAll(pemKey("PRIVATE KEY", 12), "\n", "\n> "), strings.ReplaceAll(pemKey("PRIVATE KEY", 12), "\n", "\n> > "), strings.ReplaceAll(pemKey("EC PRIVATE KEY", 3), "\n", "\r\n    "),
			strings.ReplaceAll(pemKey("PRIVATE KEY", 12), "\n", "\n# "), strings.ReplaceAll(pemKey("PRIVATE KEY", 12), "\n", "\n// "),
			strings.ReplaceAll(pemKey("PRIVATE KEY", 12), "\n", "\n-"), strings.ReplaceAll(pemKey("PRIVATE KEY", 12), "\n", "\n+"),
			"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n" + alphanumeric(64) + "\n-----END RSA PRIVATE KEY-----"},
	} {
		for _, token := range tokens {
			all[token] = "[redacted:" + kind + "]"
		}
	}
	for kind, tokens := range families() {
		for _, token := range tokens {
			all[token] = "[redacted:" + kind + "]"
		}
	}
	for before, tokens := range map[string][2]string{
		"Cookie: _gitlab_session=":                                 {hexadecimal(32), "gitlab_session"},
		"aws_secret_access_key = ":                                 {alphanumeric(39) + "/", "aws_secret_key"},
		"AWS_SECRET_ACCESS_KEY=":                                   {alphanumeric(40), "aws_secret_key"},
		`"SecretAccessKey": "`:                                     {alphanumeric(40), "aws_secret_key"},
		"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=": {alphanumeric(86) + "==", "azure_storage_key"},
		"SharedAccessKey=":                                         {alphanumeric(43) + "=", "azure_key"},
		"export HEROKU_API_KEY=":                                   {"01234567-89ab-cdef-0123-456789abcdef", "heroku_key"},
		"bot 123456789:":                                           {"AA" + alphanumeric(33), "telegram_token"},
		"postgres://app:":                                          {"s3cr3t-pa55word", "url_password"},
		"Authorization: Basic ":                                    {"dXNlcjpwYXNzd29yZA==", "basic_auth"},
		`{"Authorization": "Basic `:                                {"dXNlcjpwYXNzd29yZA==", "basic_auth"},
		"authorization: Bearer ":                                   {alphanumeric(40), "bearer_token"},
		"secret of the app: aB38":                                  {"Q~" + alphanumeric(34), "azure_client_secret"},
		"client-key-data: ":                                        {inBase64Lines(pemKey("RSA PRIVATE KEY", 20), 0), "kubernetes_key"},
		"kind: Secret\ndata:\n  tls.key: ":                         {inBase64Lines(pemKey("PRIVATE KEY", 20), 0), "private_key"},
		"$ base64 key.pem\n":                                       {inBase64Lines(pemKey("PRIVATE KEY", 20), 76), "private_key"},
		"GOOGLE_CREDENTIALS=":                                      {inBase64Lines("{\n  \"type\": \"service_account\",\n  \"private_key\": \""+alphanumeric(400)+"\"}", 0), "private_key"},
		"users:\n- user:\n    token:  ":                            {alphanumeric(48), "kubernetes_token"},
		"users:\n- user:\n    token: ":                             {"k8s-aws-v1." + alphanumeric(300), "kubernetes_token"},
		`{"auths":{"ghcr.io":{"auth": "`:                           {inBase64Lines("robot:aZ3kQ9xB7mT1", 0), "docker_auth"},
		"//registry.example.com/:_auth=":                           {inBase64Lines("robot:aZ3kQ9xB7mT1", 0), "docker_auth"},
		"//registry.example.com/:_authToken=":                      {uuidLike(), "secret"},
		"CLOUDFLARE_API_TOKEN=":                                    {alphanumeric(40), "secret"},
		"ARM_CLIENT_SECRET=":                                       {alphanumeric(40), "secret"},
		"client_secret: ":                                          {alphanumeric(32), "secret"},
		`"client_secret": "`:                                       {hexadecimal(40), "secret"},
		`\"apiKey\": \"`:                                           {hexadecimal(32), "secret"},
		"oauth:\n  refresh_token = ":                               {alphanumeric(64), "secret"},
		"export DB_PASSWORD=":                                      {"swordfish", "password"},
		"PGPASSWORD='":                                             {"tr0ub4dor&3", "password"},
		"spring.datasource.password=":                              {"Tr0ub4dor!3", "password"},
		"  password: ":                                             {"s3cr3t-pa55word", "password"},
		`"password": "`:                                            {"s3cr3t&pa55word", "password"},
		"curl -s -u app:":                                          {"s3cr3t-pa55word", "password"},
		"curl --fail \\\n  --user \"deploy:":                       {"swordfish", "password"},
	} {
		after := ""
		switch {
		case tokens[1] == "url_password":
			after = "@db.example.com:5432/app"
		case strings.HasSuffix(before, `\"`):
			after = `\"`
		case strings.HasSuffix(before, `"`), strings.HasSuffix(before, "'"):
			after = before[len(before)-1:]
		}
		all[before+tokens[0]+after] = before + "[redacted:" + tokens[1] + "]" + after
	}
	return all
}

// numbered puts a number before every line but the first, before which there may be anything.
func numbered(text, form string) string {
	lines := strings.Split(text, "\n")
	for i := 1; i < len(lines); i++ {
		lines[i] = fmt.Sprintf(form, i+1) + lines[i]
	}
	return strings.Join(lines, "\n")
}

func TestEveryKindOfKeyIsHidden(t *testing.T) {
	seen := map[string]bool{}
	for in, want := range samples() {
		for _, around := range [][2]string{{"", ""}, {"a token: ", ".\n"}, {"K=\"", "\"\n"}, {`{"content":"x\n`, `\n"}`}, {"\x1b[32m", "\x1b[0m"}, {"?t%3D", "&x=1"}, {"[secret:A]", " z"}} {
			r := new(Redactor)
			text := around[0] + in + around[1]
			if strings.HasSuffix(in, "_AA") && strings.HasPrefix(around[1], ".") {
				continue
			}
			if got := r.String(text); got != around[0]+want+around[1] {
				t.Errorf("%q\n gives %q\n want  %q", text, got, around[0]+want+around[1])
			}
		}
		_, kind, _ := strings.Cut(want, "[redacted:")
		kind, _, _ = strings.Cut(kind, "]")
		seen[kind] = true
	}
	for _, s := range shapes() {
		if !seen[s.kind] {
			t.Errorf("no sample of %s (%s)", s.kind, s.prefix)
		}
	}
}

func TestOtherTextIsKept(t *testing.T) {
	for _, text := range []string{
		"bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy and bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
		"commit d00915c0a1b2c3d4e5f60718293a4b5c6d7e8f90", "sha256:" + hexadecimal(64), "key " + hexadecimal(32),
		"123e4567-e89b-12d3-a456-426614174000", "SK", "SKIP", "SKU-12345", "AKIA", "AKIAIOSFODNN7EXAMPL", "AKIA" + capital(17), "xAKIA" + capital(16),
		"data:image/png;base64," + strings.Repeat(alphanumeric(64)+"+/", 50),
		"sk-learn is no key", "sk-" + strings.Repeat("x", 48), "task-" + alphanumeric(48), "risk-ant-" + alphanumeric(30), "ghp_short", "ghp_" + strings.Repeat("x", 36),
		"npm_config_registry_is_a_variable_of_npm_itself", "npm_lifecycle_event", "hf_hub_download", "dapiserver",
		"key-" + hexadecimal(64), "key-value", "dop_v1_short", "eyJhbGciOiJIUzI1NiJ9", "https://eyJ.example.com", "SG.1.2",
		"https://example.com:8080/a@b", "https://user@example.com:80/", "git@github.com:org/repo.git", "ssh://git@github.com/org/repo",
		"postgres://postgres:postgres@localhost:5432/db", "postgres://user:password@localhost/db", "redis://:$REDIS_PASSWORD@redis", "https://${USER}:${PASS}@host",
		"https://%s:%s@%s", "mysql://root:*****@db", "http://a:b", "https://a:[secret:P]@b", "npm install https://registry/@scope/pkg", "see http://[::1]:8080/ and mail a@b",
		"Bearer token", "Bearer authentication-is-required-here", "Bearer [secret:TOKEN]", "a bearer of good news and long-lived-hyphenated-words",
		"Authorization: Basic", "authorization policies are basic", "Authorization: $TOKEN", "Basic dXNlcjpwYXNzd29yZA==",
		"aws_secret_access_key is the name", "aws_secret_access_key = var.secret", "AccountKey=<key>", "SecretAccessKey: " + hexadecimal(64),
		"if strings.Contains(s, \"-----BEGIN RSA PRIVATE KEY-----\") {\n\treturn true\n}", "-----BEGIN CERTIFICATE-----\n" + alphanumeric(64) + "\n-----END CERTIFICATE-----",
		"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", "-----BEGIN PUBLIC KEY-----\n" + alphanumeric(64), "-----BEGIN ", "-----", "a:AA" + alphanumeric(33),
		"12:AA" + alphanumeric(33), "time 123456789:AA", "hvs.", "hvs.short", "Mmm.", "MTA", "xoxb-", "xoxo-hugs-and-kisses-to-everyone-here",
		"Password: ", "Enter your password: ", "password: at least 12 characters, 2 digits", "The password: hunter2.", `"password": "string"`, `password: "Enter your password"`,
		"password = getPassword2(user1)", "password := cfg.Auth2.Pass1word", "if password == old1Pass2word3 {", "password: ${DB_PASS1}", "DB_PASSWORD=$(cat /run/s3cr3t)", "PASSWORD={{ pass1w0rd }}", "DB_PASSWORD=",
		"DB_PASSWORD_FILE=/run/secrets/db1", "PASSWORD=/run/secrets/db1pass", "DB_PASSWORD=<your-password>", "DB_PASSWORD=changeme", "PASSWORD=********", "passwordless: s3cr3t-pa55word", "PWD=/home/u5er/w0rk", "password: https://ex4mple.com/r3set",
		"client_secret: ${{ secrets.CLIENT_SECRET }}", "client_secret: your-client-secret-goes-here", "api_key = os.environ[\"API_KEY_1_2_3\"]", "apiKey: process.env.KEY_1A2B3C4D5E", "API_KEY_ID=" + hexadecimal(32), "max_token: 4096", "access_token: string",
		"_authToken=${NPM_TOKEN}", "//registry.npmjs.org/:_authToken=", `"auth": "none"`, `"auth": "dGhlcmUgaXMgbm8gY29sb24"`, `"auth": {"user": 1}`, "author: dXNlcjpwYXNzd29yZA==",
		"curl -u \"$USER:$PASS\" https://example.com", "curl -u user:password https://example.com", "docker run -u 1000:1000 image", "docker run --user www-data:www-data2 image", "sort -u a:bcdef", "curl -s https://example.com\ndocker run -u 1000:10001 x", "curl -u me https://example.com",
		"the token: " + hexadecimal(40), "next_page_token: " + hexadecimal(40), "tokens: 12345678901234567890", "token: required", "  token: ${TOKEN}",
		"client-certificate-data: " + inBase64Lines("-----BEGIN CERTIFICATE-----\n"+strings.Repeat(alphanumeric(64)+"\n", 12)+"-----END CERTIFICATE-----\n", 0), "LS0tLS1CRUdJTi", "certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
		"git show " + hexadecimal(40), "index " + hexadecimal(7) + ".." + hexadecimal(7), "id: " + uuidLike(), "sk-lf-" + hexadecimal(8), "lsv2_pt_short", "pcsk_x", "tvly-your-key", "nvapi-" + strings.Repeat("x", 64), "ABSK", "EAAA" + alphanumeric(59), "dp.pt.x", "dp.component." + alphanumeric(43),
		"pul-" + hexadecimal(41), "fm2_x", "glft-x", "sq0idp-" + alphanumeric(22), "v1.0-rc1", "v1.0-" + hexadecimal(24), "re_compile_all_the_patterns_of_this_file", "pattern " + alphanumeric(14), "pa-" + strings.Repeat("long-name-", 4) + "xyz", "fw_version_1_2_3", "pk_of_table_1", "cio", "cioppino", "8Q~", "a8Q~" + alphanumeric(34),
		"data:image/jpeg;base64,/9j/" + "EAAA" + strings.Repeat(alphanumeric(64)+"+/", 50), "data:image/png;base64,iVBORw0KGgo/ABSK" + strings.Repeat(alphanumeric(64)+"+/", 50),
		"[redacted:github_token] [secret:NAME]", "", "-", ":", "::", "://", "g", "gh", "ya29", "HEROKU_API_KEY=none",
	} {
		if got := new(Redactor).String(text); got != text {
			t.Errorf("%q\n became %q", text, got)
		}
	}
}

// What a program has in its files stays as it is: only the samples of tests look like keys.
func TestSourcesAreKept(t *testing.T) {
	for _, name := range []string{"shaper.go", "finders.go", "run.go", "redact.go", "shapes.go", "unseen.go", "written.go", "../go.sum"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := new(Redactor).String(string(b)); got != string(b) {
			t.Errorf("%s holds what looks like a key", name)
		}
	}
}

// A key of which only the lines are quoted, each with its number, is hidden from its first line on.
func TestAKeyBehindNumbersIsHidden(t *testing.T) {
	listing := numbered("first\n"+pemKey("PRIVATE KEY", 12)+"\nlast", "%6d\t")
	if got := new(Redactor).String(listing); got != "first\n     2\t[redacted:private_key]\n    17\tlast" {
		t.Errorf("gives %q", got)
	}
}

func TestASecretWithinArgumentsIsHidden(t *testing.T) {
	r := NewRedactor(map[string]string{"S": "say \"<hi>\"\\n"})
	if got := r.String(`{"command":"echo say \"<hi>\"\\n"}`); got != `{"command":"echo [secret:S]"}` {
		t.Errorf("gives %s", got)
	}
}

func TestAKeyWithoutItsEndIsHidden(t *testing.T) {
	key := pemKey("PRIVATE KEY", 8)
	got := new(Redactor).String("x\n" + key[:400] + "\nbut then\n")
	if got != "x\n[redacted:private_key]\nbut then\n" && strings.Contains(got, alphanumeric(40)) {
		t.Errorf("gives %q", got)
	}
	if got := new(Redactor).String(key[:380]); got != "[redacted:private_key]" && strings.Contains(got, alphanumeric(40)) {
		t.Errorf("gives %q", got)
	}
}

func inChunks(in string, sizes func(left int) int) string {
	r := new(Redactor)
	var out []byte
	for rest := []byte(in); len(rest) > 0; {
		n := sizes(len(rest))
		out = r.Write(out, rest[:n])
		rest = rest[n:]
	}
	return string(r.Flush(out))
}

func TestKeysAreFoundHoweverTheStreamIsCut(t *testing.T) {
	var pieces []string
	for in := range samples() {
		pieces = append(pieces, in)
		want := new(Redactor).String("x " + in + " y")
		if again := new(Redactor).String(want); again != want {
			t.Errorf("%q becomes %q and then %q", in, want, again)
		}
		if got := inChunks("x "+in+" y", func(int) int { return 1 }); got != want {
			t.Errorf("byte by byte %q gives %q, whole %q", in, got, want)
		}
		for cut := range len(in) {
			r := new(Redactor)
			if got := string(r.Flush(r.Write(r.Write(nil, []byte(in[:cut])), []byte(in[cut:])))); got != new(Redactor).String(in) {
				t.Errorf("%q cut at %d gives %q", in, cut, got)
			}
		}
	}
	slices.Sort(pieces)
	for _, s := range shapes() {
		pieces = append(pieces, s.prefix)
	}
	pieces = append(pieces, " ", "\n", "\\n", "a", "-", "_", ".", "=", ":", "@", "\"", "\x1b[1m", "%3D", pemEnd, "PRIVATE KEY-----", "Proc-Type: x", alphanumeric(40), hexadecimal(32), "123456789", "Basic ")
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 8).Draw(t, "pieces") {
			from := 0
			if rapid.Bool().Draw(t, "torn") {
				from = rapid.IntRange(0, len(p)-1).Draw(t, "from")
			}
			b.WriteString(p[from:rapid.IntRange(from, len(p)).Draw(t, "to")])
		}
		in := b.String()
		want := new(Redactor).String(in)
		got := inChunks(in, func(left int) int { return rapid.IntRange(1, left).Draw(t, "n") })
		if got != want {
			t.Fatalf("%q\n in chunks %q\n whole     %q", in, got, want)
		}
	})
}

func FuzzRedactor(f *testing.F) {
	for in := range samples() {
		f.Add([]byte(in), uint8(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint8) {
		want := new(Redactor).String(string(in))
		if got := inChunks(string(in), func(left int) int { return min(left, int(cut)+1) }); got != want {
			t.Fatalf("in chunks of %d %q, whole %q", int(cut)+1, got, want)
		}
	})
}

func TestTheLongestKeysAreBounded(t *testing.T) {
	body := strings.Repeat(alphanumeric(64)+"\n", 4_000)
	r := new(Redactor)
	out := r.Write(nil, []byte("-----BEGIN PRIVATE KEY-----\n"+body[:pemMax/2]))
	if len(out) != 0 {
		t.Errorf("%d bytes of a key were given out", len(out))
	}
	out = r.Write(out, []byte(body))
	if len(r.shaper.buf) > pemMax || !bytes.HasPrefix(out, []byte("[redacted:private_key]")) {
		t.Errorf("%d bytes are held; given out: %.60q", len(r.shaper.buf), out)
	}
	if got := new(Redactor).String("sk-ant-" + strings.Repeat(alphanumeric(1000), 20)); !strings.HasPrefix(got, "[redacted:anthropic_key]") {
		t.Errorf("a very long key gives %.60q", got)
	}
}

func BenchmarkRedactor(b *testing.B) {
	source, err := os.ReadFile("run.go")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"source": strings.Repeat(string(source), 1<<20/len(source)),
		"log":    strings.Repeat("2026-01-02T03:04:05Z INFO  server: GET /api/v1/items?page=3 200 12ms request_id=7f3b9c\n", 12_000),
		"base64": strings.Repeat(alphanumeric(76)+"\n", 14_000),
		"colour": strings.Repeat("\x1b[32mINFO\x1b[0m  server: \x1b[1mGET\x1b[0m /api/v1/items?page=3 200 12ms\n", 14_000),
	} {
		for _, secrets := range []map[string]string{nil, {"TOKEN": "correct horse battery staple"}} {
			b.Run(fmt.Sprintf("%s/secrets=%d", name, len(secrets)), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				r := NewRedactor(secrets)
				in, out := []byte(text), make([]byte, 0, 2*len(text))
				for b.Loop() {
					out = r.Flush(r.Write(out[:0], in))
				}
			})
		}
	}
}
