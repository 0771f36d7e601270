//go:build !race

package tier

// Raced says that the test has the race detector.
const Raced = false

// Commands is where Millwright's executables lie below the repository's root: without the race
// detector, as the test that starts them is.
const Commands = "bin"
