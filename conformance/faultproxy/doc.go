// Package faultproxy stands before HTTP services, breaks requests by rules, and remembers all of
// them: their number is what a driver's calls are counted by. It serves this machine alone, in
// plain HTTP, whatever the services themselves speak.
//
// Over HTTP, at an address of its own:
//
//	PUT    /rules   replaces the rules, a JSON list of Rule; GET tells them with their hits
//	GET    /calls   tells the calls, a JSON list of Call; DELETE tells them and forgets them
package faultproxy
