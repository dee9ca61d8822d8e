package cas

import "context"

type patientKey struct{}

// Patient has a store that cannot be reached waited for, by all that is asked of it with the context, until until ends: then, and not
// before, the error wraps protocol.ErrUnreachable. nil is for asking without patience, as people do. A directory is always
// reached.
func Patient(ctx, until context.Context) context.Context {
	return context.WithValue(ctx, patientKey{}, until)
}

// Patience is the until of Patient, nil for none.
func Patience(ctx context.Context) context.Context {
	until, _ := ctx.Value(patientKey{}).(context.Context)
	return until
}
