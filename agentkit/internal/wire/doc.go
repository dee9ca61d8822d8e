// Package wire is what the adapters share: requests whose bytes are fixed, streams of
// server-sent events, and refusals by their kind.
//
//	Object ─bytes─► Call ─Post─► refusal → *model.Error
//	                     └─read─► Events ─► adapter
//
// Nothing here knows a provider.
package wire
