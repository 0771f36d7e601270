// Package csrapproval approves and denies the CertificateSigningRequests of machines' kubelets, in
// the cluster of the Nodes. It reads what a request is decided by, live; core/bootstrap/csr
// decides; it writes the decision, and tells of a refusal in an Event about the Machine.
//
// Requests come from the cache of the cluster of the Nodes, which holds them in the order in which
// the API server took them: a request is reconciled once all that came before it are there. That is
// what makes the count of a token's requests exact.
//
// A request that has to wait is decided when its Machine's status changes, and looked at again from
// time to time.
package csrapproval
