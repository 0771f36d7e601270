// Package csr decides which certificates a machine's kubelet may have. It is pure: a
// CertificateSigningRequest and what the API servers say, read for it, give a Decision.
//
// A request is a kubelet's first one, made with a bootstrap token; a renewal of that certificate,
// made with it; or one for the certificate that the kubelet serves with, made with it, too. Read
// reads a request, Decide holds it to the rules of its kind. Each rule has a name, which people see
// in the condition Denied and in an Event:
//
//	form.go    what each request has to be: one PEM block, a kubelet's subject, usages, a good key
//	rules.go   who may ask for what, kind by kind
//
// What is not a machine's is left to others. What is, and is wrong for good, is denied. What cannot
// be judged yet, for the status of the Machine does not name its Node or its addresses, waits.
//
// What is taken as true is what the requestor cannot write. The API server writes the requestor's
// name and groups. The token is in a Secret. The Machine's status names the Node, and the addresses
// that the driver has given. What the kubelet says of itself, as in the addresses of its Node, is
// not asked.
package csr
