// Package api is how the services of a simulated cloud are called: a call in hand, the routes that
// lead to it, and what it is answered with. It also holds what several services read or write in
// the same way: errors, microversions, pages of lists, JSON as Python repeats it.
//
// Call, Route and Reply are what to read first: each service is a table of routes, and a function
// from a Call to a Reply for each of them.
package api
