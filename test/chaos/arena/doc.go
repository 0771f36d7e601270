// Package arena runs campaigns of chaos: round after round, a plan is carried out on a whole
// Millwright of its own, all is put right again, and once everything has settled the round is
// judged.
package arena
