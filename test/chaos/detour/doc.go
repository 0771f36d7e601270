// Package detour leads connections through this process, which can break them: between two
// processes on one machine there is no other network to fail.
package detour
