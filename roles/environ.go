package roles

import (
	"maps"
	"slices"
	"strings"
)

// modelKeys are the variables by which models are paid for. A command never inherits one; a
// workflow that wants a command to have it declares it under secrets and hands it over by env.
// A name that ends in _API_KEY need not be listed.
var modelKeys = map[string]bool{
	"ANTHROPIC_AUTH_TOKEN":     true,
	"AWS_BEARER_TOKEN_BEDROCK": true,
	"CLAUDE_CODE_OAUTH_TOKEN":  true,
	"GITHUB_MODELS_TOKEN":      true,
	"HF_TOKEN":                 true,
	"HUGGINGFACEHUB_API_TOKEN": true,
	"HUGGING_FACE_HUB_TOKEN":   true,
	"REPLICATE_API_TOKEN":      true,
	"WATSONX_APIKEY":           true,
}

// secretEndings are how the names of secrets end. A variable like that is inherited only when
// the workflow declares it under secrets.
var secretEndings = []string{
	"_TOKEN", "_SECRET", "_SECRETS", "PASSWORD", "_PASSWD", "_PASSPHRASE", "_PAT",
	"_CREDENTIAL", "_CREDENTIALS", "APIKEY", "_ACCESS_KEY", "_ACCESS_KEY_ID", "_SECRET_KEY",
	"_PRIVATE_KEY", "_SIGNING_KEY", "_ENCRYPTION_KEY", "_MASTER_KEY",
}

// IsModelKey reports whether the variable holds the key of a model.
func IsModelKey(name string) bool {
	name = strings.ToUpper(name)
	return modelKeys[name] || strings.HasSuffix(name, "_API_KEY") || name == "API_KEY"
}

// LooksSecret reports whether the name of a variable ends like that of a secret.
func LooksSecret(name string) bool {
	name = strings.ToUpper(name)
	return name == "TOKEN" || name == "SECRET" ||
		slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}

// inherit is what a command keeps of the environment: neither model keys, nor the keys named
// by the configuration, nor secrets that the workflow does not declare.
func inherit(environ, declared, keys []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, pair := range environ {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || IsModelKey(name) || slices.Contains(keys, name) {
			continue
		}
		if LooksSecret(name) && !slices.Contains(declared, name) {
			continue
		}
		env[name] = value
	}
	return env
}

// Inherit is what a program keeps of an environment (name=value): neither model keys, nor keys,
// nor secrets that are not declared. It is sorted.
func Inherit(environ, declared, keys []string) []string {
	return pairs(inherit(environ, declared, keys))
}

// pairs is the form that exec wants, sorted by name.
func pairs(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}
