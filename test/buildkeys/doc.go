// Package buildkeys tests the keys under which the scripts below tools/ keep what they have built.
package buildkeys
