package lang

import "regexp"

var secretExpr = regexp.MustCompile(`^secrets\.([A-Za-z_][A-Za-z0-9_]*)$`)

// isSecretExpr reports whether an expression is exactly secrets.NAME.
func isSecretExpr(src string) bool { return secretExpr.MatchString(src) }
