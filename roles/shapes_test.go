package roles

import (
	"bytes"
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

func pemKey(kind string, lines int) string {
	return "-----BEGIN " + kind + "-----\n" + strings.Repeat(alphanumeric(62)+"+/\n", lines) + "Zm9vYmFy==\n-----END " + kind + "-----"
}

// samples are texts with a key, and how they look without it.
func samples() map[string]string {
	all := map[string]string{}
	for kind, tokens := range map[string][]string{
		"anthropic_key":      {"sk-ant-api03-" + alphanumeric(90) + "-_AA"},
		"openai_key":         {"sk-proj-" + alphanumeric(40) + "_" + alphanumeric(20), "sk-svcacct-" + alphanumeric(50)},
		"openrouter_key":     {"sk-or-v1-" + hexadecimal(64)},
		"api_key":            {"sk-" + alphanumeric(48), "sk-" + hexadecimal(32)},
		"groq_key":           {"gsk_" + alphanumeric(52)},
		"xai_key":            {"xai-" + alphanumeric(80)},
		"replicate_token":    {"r8_" + alphanumeric(37)},
		"perplexity_key":     {"pplx-" + alphanumeric(48)},
		"huggingface_token":  {"hf_" + alphanumeric(34)},
		"github_token":       {"ghp_" + alphanumeric(36), "gho_" + alphanumeric(36), "ghs_" + alphanumeric(36), "github_pat_" + alphanumeric(22) + "_" + alphanumeric(59)},
		"gitlab_token":       {"glpat-" + alphanumeric(20)},
		"aws_key_id":         {"AKIA" + capital(16), "ASIA" + capital(16)},
		"google_key":         {"AIza" + alphanumeric(33) + "-_"},
		"google_secret":      {"GOCSPX-" + alphanumeric(28)},
		"google_token":       {"ya29." + alphanumeric(120)},
		"slack_token":        {"xoxb-123456789012-1234567890123-" + alphanumeric(24), "xapp-1-A0123-456-" + hexadecimal(64)},
		"slack_webhook":      {"hooks.slack.com/services/T" + capital(10) + "/B" + capital(10) + "/" + alphanumeric(24)},
		"stripe_key":         {"sk_live_" + alphanumeric(24), "rk_live_" + alphanumeric(24), "whsec_" + alphanumeric(32)},
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
		"age_key":            {"AGE-SECRET-KEY-1" + capital(58)},
		"jwt":                {"eyJ" + alphanumeric(33) + ".eyJ" + alphanumeric(60) + "." + alphanumeric(43)},
		"discord_token":      {"MTA" + alphanumeric(23) + "." + alphanumeric(6) + "." + alphanumeric(38)},
		"private_key": {pemKey("RSA PRIVATE KEY", 20), pemKey("OPENSSH PRIVATE KEY", 5), pemKey("PGP PRIVATE KEY BLOCK", 30),
			strings.ReplaceAll(pemKey("PRIVATE KEY", 20), "\n", `\n`),
			strings.ReplaceAll(pemKey("EC PRIVATE KEY", 3), "\n", "\n\" +\n\t\""),
			"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n" + alphanumeric(64) + "\n-----END RSA PRIVATE KEY-----"},
	} {
		for _, token := range tokens {
			all[token] = "[redacted:" + kind + "]"
		}
	}
	for before, tokens := range map[string][2]string{
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
	} {
		after := ""
		if tokens[1] == "url_password" {
			after = "@db.example.com:5432/app"
		}
		all[before+tokens[0]+after] = before + "[redacted:" + tokens[1] + "]" + after
	}
	return all
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
	for _, s := range shapes {
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
		"[redacted:github_token] [secret:NAME]", "", "-", ":", "::", "://", "g", "gh", "ya29", "HEROKU_API_KEY=none",
	} {
		if got := new(Redactor).String(text); got != text {
			t.Errorf("%q\n became %q", text, got)
		}
	}
}

// What a program has in its files stays as it is: only the samples of tests look like keys.
func TestSourcesAreKept(t *testing.T) {
	for _, name := range []string{"shaper.go", "finders.go", "run.go", "redact.go", "../go.sum"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := new(Redactor).String(string(b)); got != string(b) {
			t.Errorf("%s holds what looks like a key", name)
		}
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
	for _, s := range shapes {
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
