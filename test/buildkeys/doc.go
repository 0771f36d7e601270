// Package buildkeys tests the key under which tools/controlplane/build.sh keeps what it has built.
package buildkeys
