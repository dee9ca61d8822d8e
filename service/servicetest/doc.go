// Package servicetest is the conformance suite of services: what every api.Service must do, in this process
// and over HTTP.
package servicetest
