// Package redact keeps secrets out of what is logged and told of a call. Core and the SDK both use
// it, so that both look for the same forms of a secret. It is the second line: a driver does not
// repeat its secrets in the first place.
//
// What people read is cleaned: messages, descriptions, a machine's reason. What programs read
// passes as it is: names, uids, providerIDs, codes, the contract's own reasons. A Secret often
// holds a region or the name of an account beside the password. An id in which that was replaced
// would be the id of something else.
package redact
