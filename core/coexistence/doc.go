// Package coexistence finds the objects of this API group that another system's controllers work
// on. It finds them by the marks that package foreign knows. It shows on them that Millwright
// leaves them alone. An object goes with what it owns and with what owns it: docs/adr/0021 has
// the reasons.
package coexistence
