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

	name bool   // the prefix is a name, shown; separators may follow it
	find finder // for what is no plain run
}

// open is the max of shapes without a fixed length.
const open = 8 << 10

// Every kind of key. Of two prefixes where one begins with the other, the longer stands first.
var shapes = slices.Concat(
	plain("anthropic_key", word, 20, open, "sk-ant-"),
	plain("openai_key", word, 20, open, "sk-proj-", "sk-svcacct-", "sk-admin-"),
	mixed("openrouter_key", alnum, 40, open, "sk-or-v1-"),
	mixed("api_key", alnum, 32, open, "sk-"),
	plain("groq_key", alnum, 48, 60, "gsk_"),
	plain("xai_key", alnum, 60, 100, "xai-"),
	plain("replicate_token", alnum, 37, 40, "r8_"),
	plain("perplexity_key", alnum, 40, 64, "pplx-"),
	plain("huggingface_token", alnum, 34, 40, "hf_"),
	plain("github_token", alnum, 36, 255, "ghp_", "gho_", "ghs_", "ghu_", "ghr_"),
	plain("github_token", under, 60, 255, "github_pat_"),
	plain("gitlab_token", word, 20, 255, "glpat-", "gldt-", "glrt-", "glptt-", "gloas-", "glcbt-"),
	plain("aws_key_id", upper, 16, 16, "AKIA", "ASIA"),
	named("aws_secret_key", base64, 40, 40, "aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey", "aws_secret_key"),
	named("azure_storage_key", base64, 86, 88, "AccountKey"),
	named("azure_key", base64, 43, 44, "SharedAccessKey"),
	plain("google_key", word, 35, 35, "AIza"),
	plain("google_secret", word, 28, 28, "GOCSPX-"),
	plain("google_token", word, 40, open, "ya29."),
	mixed("slack_token", dashed, 20, 255, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xoxp-", "xapp-"),
	formed("slack_webhook", pathSet, 30, 120, `[BT][A-Z0-9]{7,}/B[A-Z0-9]{7,}/[A-Za-z0-9]{16,}`, "hooks.slack.com/services/"),
	plain("stripe_key", alnum, 16, 255, "sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"),
	plain("npm_token", alnum, 36, 36, "npm_"),
	plain("pypi_token", word, 50, open, "pypi-AgEI"),
	plain("rubygems_key", hex, 48, 48, "rubygems_"),
	formed("sendgrid_key", dotted, 60, 80, `[\w-]{16,32}\.[\w-]{32,64}`, "SG."),
	plain("mailgun_key", hex, 32, 32, "key-"),
	plain("twilio_key", hex, 32, 32, "SK"),
	plain("digitalocean_token", hex, 64, 64, "dop_v1_", "doo_v1_", "dor_v1_"),
	plain("vault_token", word, 24, open, "hvs.", "hvb.", "hvr."),
	plain("terraform_token", dotted, 60, 120, "atlasv1."),
	plain("heroku_key", word, 36, 80, "HRKU-"),
	namedForm("heroku_key", dashed, 36, 36, `[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`, "HEROKU_API_KEY"),
	plain("databricks_token", hex, 32, 32, "dapi"),
	formed("postman_key", dashed, 59, 59, `[0-9a-f]{24}-[0-9a-f]{34}`, "PMAK-"),
	plain("linear_key", alnum, 32, 64, "lin_api_", "lin_oauth_"),
	plain("shopify_token", hex, 32, 32, "shpat_", "shpca_", "shppa_", "shpss_"),
	plain("docker_token", word, 24, 64, "dckr_pat_", "dckr_oat_"),
	plain("grafana_token", under, 32, open, "glsa_", "glc_"),
	plain("newrelic_key", upper, 27, 27, "NRAK-"),
	plain("atlassian_token", dotted, 60, 255, "ATATT3"),
	plain("notion_token", alnum, 40, 64, "ntn_"),
	plain("figma_token", word, 36, 60, "figd_"),
	plain("supabase_key", hex, 40, 40, "sbp_"),
	plain("age_key", upper, 58, 58, "AGE-SECRET-KEY-1"),
	formed("jwt", dotted, 30, open, `[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{10,}`, "eyJ"),
	formed("discord_token", dotted, 55, 90, `[\w-]{20,26}\.[\w-]{6}\.[\w-]{27,45}`, discord()...),
	found("telegram_token", telegramToken, ":AA"),
	found("url_password", urlPassword, "://"),
	found("basic_auth", basicAuth, "Authorization", "authorization", "AUTHORIZATION"),
	found("bearer_token", bearerToken, "Bearer ", "bearer "),
	found("private_key", privateKey, pemBegin),
)

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
	alnum   = setOf(lowerCase + upperCase + digits)
	under   = setOf(lowerCase + upperCase + digits + "_")
	dashed  = setOf(lowerCase + upperCase + digits + "-")
	word    = setOf(lowerCase + upperCase + digits + "_-")
	dotted  = setOf(lowerCase + upperCase + digits + "_-.")
	base64  = setOf(lowerCase + upperCase + digits + "+/=")
	pathSet = setOf(lowerCase + upperCase + digits + "/")
	upper   = setOf(upperCase + digits)
	hex     = setOf("abcdef" + digits)
	between = setOf(" \t\"'\\:=>") // of a name and its value
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
