package roles

import (
	"regexp"
	"slices"
	"sync"
)

// A shape is the form of a well-known kind of key: a prefix, with which a word begins, then a
// run of characters of one set, as long as there are any. Both are replaced by
// [redacted:KIND]. A prefix that is a name, such as AccountKey, is kept; it may end a longer
// name.
//
// A run that is too short or too long, or that goes on with a letter or digit, is no key. So
// is one that repeats a single character, as examples do.
type shape struct {
	prefix, kind string
	set          *set
	min, max     int                   // characters of the run
	form         func() *regexp.Regexp // of the run, or nil
	mixed        bool                  // has letters and at least two digits

	name bool   // the prefix may stand within a word; where there is no finder it is a name, shown, and separators may follow it
	find finder // for what is no plain run
}

// open is the max of shapes without a fixed length.
const open = 8 << 10

// shapes are those of every kind of key. Of two prefixes where one begins with the other, the longer stands first.
func shapes() []shape {
	return slices.Concat(
		plain("anthropic_key", word, 20, open, "sk-ant-"),
		formed("langfuse_key", dashed, 36, 36, uuid, "sk-lf-", "pk-lf-"),
		plain("openai_key", word, 20, open, "sk-proj-", "sk-svcacct-", "sk-admin-"),
		mixed("openrouter_key", alnum, 40, open, "sk-or-v1-"),
		mixed("api_key", alnum, 32, open, "sk-"),
		mixed("elevenlabs_key", hexSet, 48, 48, "sk_"),
		formed("mapbox_token", dotted, 60, 255, `[\w-]{40,}\.[\w-]{22}`, "sk.eyJ", "tk.eyJ", "pk.eyJ"),
		mixed("nvidia_key", word, 60, 80, "nvapi-"),
		mixed("tavily_key", word, 24, 80, "tvly-"),
		formed("pinecone_key", under, 50, 90, `[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}`, "pcsk_"),
		formed("langsmith_key", under, 40, 60, `(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`, "lsv2_"),
		mixed("cerebras_key", alnum, 48, 48, "csk-"),
		mixed("together_key", word, 40, 48, "tgp_v1_"),
		mixed("fireworks_key", alnum, 22, 24, "fw_"),
		mixed("voyage_key", word, 43, 43, "pa-"),
		mixed("jina_key", word, 60, 64, "jina_"),
		plain("firecrawl_key", hexSet, 32, 32, "fc-"),
		plain("e2b_key", hexSet, 40, 40, "e2b_"),
		plain("apify_token", alnum, 36, 36, "apify_api_"),
		mixed("wandb_key", under, 60, 120, "wandb_v1_"),
		plain("groq_key", alnum, 48, 60, "gsk_"),
		plain("xai_key", alnum, 60, 100, "xai-"),
		plain("replicate_token", alnum, 37, 40, "r8_"),
		plain("perplexity_key", alnum, 40, 64, "pplx-"),
		plain("huggingface_token", alnum, 34, 40, "hf_", "api_org_"),
		plain("github_token", alnum, 36, 255, "ghp_", "gho_", "ghs_", "ghu_", "ghr_"),
		plain("github_token", under, 60, 255, "github_pat_"),
		plain("gitlab_token", dotted, 20, 320, "glpat-", "gldt-", "glrtr-", "glrt-", "glptt-", "gloas-", "glcbt-", "glft-", "glimt-", "glagent-", "glsoat-", "glffct-", "glwt-"),
		plain("gitlab_token", word, 20, 20, "GR1348941"),
		plain("aws_key_id", upper, 16, 16, "AKIA", "ASIA", "ABIA", "ACCA"),
		plain("aws_key_id", upper, 17, 17, "A3T"),
		named("aws_secret_key", base64Set, 40, 40, "aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey", "aws_secret_key"),
		mixed("bedrock_key", base64Set, 100, 280, "ABSK"),
		mixed("bedrock_key", base64Set, 60, open, "bedrock-api-key-"),
		foundWithin("azure_client_secret", azureSecret, "Q~"),
		named("azure_storage_key", base64Set, 86, 88, "AccountKey"),
		named("azure_key", base64Set, 43, 44, "SharedAccessKey"),
		plain("google_key", word, 35, 35, "AIza"),
		plain("google_secret", word, 28, 28, "GOCSPX-"),
		plain("google_token", word, 40, open, "ya29."),
		mixed("slack_token", dashed, 16, 255, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xoxe.xoxp-", "xapp-"),
		formed("slack_webhook", pathSet, 30, 120, `[BT][A-Z0-9]{7,}/B[A-Z0-9]{7,}/[A-Za-z0-9]{16,}`, "hooks.slack.com/services/"),
		formed("slack_webhook", pathSet, 30, 120, `[A-Z0-9]{7,}(?:/[A-Za-z0-9]{7,}){2,3}`, "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"),
		formed("teams_webhook", addressSet, 140, 200, `[\w-]{36}@[\w-]{36}/IncomingWebhook/[0-9a-zA-Z]{32}/[\w-]{36}(?:/[\w-]+)?`, "webhook.office.com/webhookb2/"),
		plain("stripe_key", alnum, 16, 255, "sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_prod_", "rk_prod_"),
		plain("webhook_secret", base64Set, 24, 128, "whsec_"),
		plain("npm_token", alnum, 36, 36, "npm_"),
		plain("pypi_token", word, 50, open, "pypi-AgEI"),
		plain("rubygems_key", hexSet, 48, 48, "rubygems_"),
		formed("sendgrid_key", dotted, 60, 80, `[\w-]{16,32}\.[\w-]{32,64}`, "SG."),
		plain("mailgun_key", hexSet, 32, 32, "key-", "pubkey-"),
		plain("twilio_key", hexSet, 32, 32, "SK"),
		plain("digitalocean_token", hexSet, 64, 64, "dop_v1_", "doo_v1_", "dor_v1_"),
		mixed("cloudflare_token", word, 40, 64, "cfat_", "cfut_", "cfk_"),
		formed("cloudflare_token", dashed, 171, 171, `[0-9a-f]{24}-[0-9a-f]{146}`, "v1.0-"),
		formed("doppler_token", dotted, 40, 110, `(?:[a-z0-9_-]{1,64}\.)?[A-Za-z0-9]{40,44}`, "dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
		mixed("fly_token", base64Set, 60, open, "fm1a_", "fm1r_", "fm2_"),
		mixed("fly_token", word, 43, 43, "fo1_"),
		plain("pulumi_token", hexSet, 40, 40, "pul-"),
		formed("sentry_token", base64Any, 60, open, `eyJ[\w+/=-]{57,}`, "sntrys_"),
		plain("sentry_token", hexSet, 64, 64, "sntryu_"),
		mixed("square_token", word, 60, 60, "EAAA"),
		plain("square_token", word, 22, 60, "sq0atp-"),
		plain("square_token", word, 43, 43, "sq0csp-"),
		plain("tailscale_key", word, 20, 100, "tskey-auth-", "tskey-api-", "tskey-client-", "tskey-scim-", "tskey-webhook-"),
		mixed("planetscale_token", dottedAny, 32, 64, "pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
		mixed("neon_key", alnum, 60, 70, "napi_"),
		mixed("netlify_token", alnum, 36, 40, "nfp_"),
		mixed("vercel_token", alnum, 40, 80, "vcp_", "vck_", "vca_", "vci_", "vcr_"),
		mixed("render_key", alnum, 28, 40, "rnd_"),
		formed("resend_key", under, 33, 33, `[A-Za-z0-9]{8}_[A-Za-z0-9]{24}`, "re_"),
		formed("brevo_key", dashed, 81, 81, `[0-9a-f]{64}-[A-Za-z0-9]{16}`, "xkeysib-"),
		formed("hubspot_token", dashed, 36, 36, uuid, "pat-na1-", "pat-na2-", "pat-eu1-", "pat-ap1-"),
		formed("airtable_token", dotted, 79, 80, `[A-Za-z0-9]{14}\.[0-9a-f]{64}`, "pat"),
		plain("sonar_token", hexSet, 40, 40, "squ_", "sqp_", "sqa_"),
		formed("sourcegraph_token", under, 40, 60, `(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}`, "sgp_"),
		formed("circleci_token", under, 60, 80, `[A-Za-z0-9]+_[0-9a-f]{40}`, "CCIPAT_", "CCIPRJ_"),
		plain("buildkite_token", hexSet, 40, 40, "bkua_"),
		formed("dynatrace_token", dotted, 89, 90, `[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}`, "dt0c01.", "dt0s16."),
		mixed("onepassword_token", base64Any, 100, open, "ops_eyJ"),
		mixed("contentful_token", word, 43, 43, "CFPAT-"),
		mixed("crates_token", alnum, 32, 32, "cio"),
		mixed("posthog_key", alnum, 40, 60, "phx_"),
		plain("prefect_key", alnum, 36, 36, "pnu_", "pnb_"),
		mixed("jfrog_token", alnum, 69, 69, "AKCp"),
		mixed("jfrog_token", alnum, 59, 59, "cmVmd"),
		formed("clickup_token", under, 36, 50, `[0-9]{4,12}_[A-Z0-9]{32}`, "pk_"),
		plain("kubernetes_token", word, 60, open, "k8s-aws-v1."),
		plain("vault_token", word, 24, open, "hvs.", "hvb.", "hvr."),
		plain("terraform_token", dottedAny, 60, 120, "atlasv1."),
		plain("heroku_key", word, 36, 80, "HRKU-"),
		namedForm("heroku_key", dashed, 36, 36, uuid, "HEROKU_API_KEY"),
		plain("databricks_token", hexSet, 32, 32, "dapi"),
		formed("postman_key", dashed, 59, 59, `[0-9a-fA-F]{24}-[0-9a-fA-F]{34}`, "PMAK-"),
		plain("linear_key", alnum, 32, 64, "lin_api_", "lin_oauth_"),
		plain("shopify_token", hexSet, 32, 32, "shpat_", "shpca_", "shppa_", "shpss_"),
		plain("docker_token", word, 24, 64, "dckr_pat_", "dckr_oat_"),
		plain("grafana_token", under, 32, open, "glsa_"),
		plain("grafana_token", base64Set, 32, open, "glc_"),
		mixed("grafana_token", base64Set, 60, open, "eyJrIjoi"),
		plain("newrelic_key", alnum, 27, 27, "NRAK-"),
		plain("newrelic_key", word, 32, 32, "NRII-"),
		plain("newrelic_key", hexSet, 19, 19, "NRJS-"),
		plain("atlassian_token", dotted, 60, 255, "ATATT3"),
		plain("notion_token", alnum, 40, 64, "ntn_"),
		plain("figma_token", word, 36, 60, "figd_"),
		plain("supabase_key", hexSet, 40, 40, "sbp_"),
		plain("age_key", upper, 58, 58, "AGE-SECRET-KEY-1"),
		formed("onepassword_key", dashed, 36, 37, `[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}`, "A3-"),
		plain("adobe_secret", alnum, 32, 32, "p8e-"),
		plain("alibaba_key_id", alnum, 12, 24, "LTAI"),
		formed("authress_key", base64Dots, 50, 200, `[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[\w+/=-]{30,120}`, "sc_", "ext_", "scauth_", "authress_"),
		mixed("clickhouse_key", alnum, 38, 38, "4b1d"),
		plain("clojars_token", alnum, 60, 60, "CLOJARS_", "clojars_"),
		formed("defined_token", wordAny, 79, 79, `[\w=-]{26}-[\w=-]{52}`, "dnkey-"),
		mixed("dropbox_token", dottedAny, 130, open, "sl."),
		plain("duffel_token", wordAny, 43, 43, "duffel_live_", "duffel_test_"),
		plain("easypost_key", alnum, 54, 54, "EZAK", "EZTK"),
		mixed("facebook_token", alnum, 100, open, "EAAM", "EAAC"),
		formed("flutterwave_key", dashed, 12, 34, `[0-9a-zA-Z]{12}|[0-9a-zA-Z]{32}-X`, "FLWSECK_TEST-", "FLWSECK-", "FLWPUBK_TEST-", "FLWPUBK-"),
		plain("frameio_token", wordAny, 64, 64, "fio-u-"),
		named("gitlab_session", alnum, 32, 32, "_gitlab_session"),
		mixed("gocardless_token", wordAny, 40, 40, "live_"),
		formed("harness_key", dotted, 68, 68, `[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}`, "pat.", "sat."),
		plain("infracost_key", alnum, 32, 32, "ico-"),
		plain("intra42_secret", hexSet, 64, 64, "s-s4t2ud-", "s-s4t2af-"),
		mixed("lob_key", hexSet, 35, 35, "live_", "test_"),
		mixed("lob_key", hexSet, 31, 31, "live_pub_", "test_pub_"),
		mixed("octopus_key", upper, 26, 26, "API-"),
		plain("openshift_token", word, 43, 43, "sha256~"),
		formed("plaid_token", dashed, 36, 36, uuid, "access-sandbox-", "access-development-", "access-production-"),
		plain("readme_key", alnum, 70, 70, "rdme_"),
		plain("scalingo_token", word, 48, 48, "tk-us-"),
		plain("settlemint_token", alnum, 16, 16, "sm_aat_", "sm_pat_", "sm_sat_"),
		plain("shippo_token", hexSet, 40, 40, "shippo_live_", "shippo_test_"),
		formed("twitter_token", percented, 80, 140, `[A-Za-z0-9]+(?:%[0-9A-F]{2}[A-Za-z0-9]*)+`, "AAAAAAAAAAAAAAAAAAAAAA"),
		plain("typeform_token", dottedAny, 59, 59, "tfp_"),
		found("vault_token", oldVault, "s."),
		formed("yandex_token", dottedAny, 88, open, `[\w-]+={0,2}\.[\w-]{86}={0,2}`, "t1."),
		mixed("yandex_key", word, 35, 38, "AQVN"),
		formed("jwt", dotted, 30, open, `[\w-]{8,}\.ey[\w-]{8,}\.[\w-]{10,}`, "eyJ", "eyA"),
		formed("discord_token", dotted, 55, 90, `[\w-]{20,26}\.[\w-]{6}\.[\w-]{27,45}`, discord()...),
		found("telegram_token", telegramToken, ":AA"),
		found("url_password", urlPassword, "://"),
		found("basic_auth", basicAuth, "Authorization", "authorization", "AUTHORIZATION"),
		found("bearer_token", bearerToken, "Bearer ", "bearer "),
		found("private_key", privateKey, pemBegin),
		foundWithin("private_key", encodedPrivate, encodedPEM...),
		found("private_key", encodedKey, encodedBegin...),
		found("docker_auth", encodedKey, encodedDocker...),
		found("encoded_key", encodedToken, encodedTokens...),
		foundWithin("secret", valued(assignedToken), "_authToken"),
		foundWithin("docker_auth", valued(assignedToken), "identitytoken", "registrytoken"),
		named("kubernetes_key", base64Set, 40, pemMax, "client-key-data"),
		found("kubernetes_token", kubernetesToken, "token"),
		foundWithin("docker_auth", dockerAuth, "auth"),
		found("password", curlPassword, "-u", "--user"),
		foundWithin("secret", valued(assignedSecret), "client_secret", "clientSecret", "ClientSecret", "CLIENT_SECRET", "client-secret", "_SECRET",
			"SECRET_KEY_BASE", "SECRET_KEY", "secret_key", "secretKey", "SecretKey",
			"API_KEY", "api_key", "apiKey", "ApiKey", "APIKEY", "apikey", "api-key", "Api-Key", "API-Key",
			"_TOKEN", "access_token", "accessToken", "AccessToken", "refresh_token", "refreshToken", "RefreshToken", "refresh-token",
			"id_token", "idToken", "id-token", "access-token", "--token",
			"auth_token", "authToken", "AuthToken", "api_token", "apiToken", "bot_token", "botToken"),
		foundWithin("password", valued(assignedPassword), "PASSWORD", "PASSWD", "PASSPHRASE", "_PWD", "password", "Password", "passwd", "passphrase"),
	)
}

// uuid is the form of a UUID.
const uuid = `[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`

// A set is a set of bytes.
type set [256]bool

func setOf(chars string) *set {
	s := new(set)
	for i := range len(chars) {
		s[chars[i]] = true
	}
	return s
}

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	upperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits    = "0123456789"
)

var (
	alnum      = setOf(lowerCase + upperCase + digits)
	under      = setOf(lowerCase + upperCase + digits + "_")
	dashed     = setOf(lowerCase + upperCase + digits + "-")
	word       = setOf(lowerCase + upperCase + digits + "_-")
	dotted     = setOf(lowerCase + upperCase + digits + "_-.")
	base64Set  = setOf(lowerCase + upperCase + digits + "+/=")
	base64Any  = setOf(lowerCase + upperCase + digits + "+/=_-") // both alphabets
	wordAny    = setOf(lowerCase + upperCase + digits + "_-=")
	dottedAny  = setOf(lowerCase + upperCase + digits + "_-.=")
	pathSet    = setOf(lowerCase + upperCase + digits + "/")
	addressSet = setOf(lowerCase + upperCase + digits + "_-/@")
	base64Dots = setOf(lowerCase + upperCase + digits + "+/=_-.")
	percented  = setOf(lowerCase + upperCase + digits + "%")
	upper      = setOf(upperCase + digits)
	hexSet     = setOf("abcdefABCDEF" + digits)
	between    = setOf(" \t\"'\\:=>") // of a name and its value
)

func each(prefixes []string, s shape) []shape {
	out := make([]shape, len(prefixes))
	for i, p := range prefixes {
		s.prefix = p
		out[i] = s
	}
	return out
}

func plain(kind string, run *set, min, max int, prefixes ...string) []shape {
	return each(prefixes, shape{kind: kind, set: run, min: min, max: max})
}

func mixed(kind string, run *set, min, max int, prefixes ...string) []shape {
	return each(prefixes, shape{kind: kind, set: run, min: min, max: max, mixed: true})
}

func named(kind string, run *set, min, max int, prefixes ...string) []shape {
	return each(prefixes, shape{kind: kind, set: run, min: min, max: max, mixed: true, name: true})
}

// formed takes the form of the run.
func formed(kind string, run *set, min, max int, form string, prefixes ...string) []shape {
	return each(prefixes, shape{kind: kind, set: run, min: min, max: max, form: lazily(form)})
}

func namedForm(kind string, run *set, min, max int, form string, prefixes ...string) []shape {
	return each(prefixes, shape{kind: kind, set: run, min: min, max: max, form: lazily(form), name: true})
}

// lazily compiles a form when it is first needed: few processes meet one of each.
func lazily(form string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + form + `)$`) })
}

func found(kind string, find finder, prefixes ...string) []shape {
	return each(prefixes, shape{kind: kind, find: find})
}

// foundWithin takes prefixes that may stand within a word, as at the end of a longer name.
func foundWithin(kind string, find finder, prefixes ...string) []shape {
	return each(prefixes, shape{kind: kind, find: find, name: true})
}

// discord are the beginnings of a decimal number in Base64, as which such a token begins.
func discord() []string {
	var out []string
	for _, a := range "MNO" {
		for _, b := range "DTjz" {
			for _, c := range "AEIMQUYcgk" {
				out = append(out, string(a)+string(b)+string(c))
			}
		}
	}
	return out
}
