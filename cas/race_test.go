//go:build race

package cas_test

const raceDetector = true
