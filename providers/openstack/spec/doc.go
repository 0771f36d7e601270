// Package spec reads the cloudProviderSpec of OpenStack: what a machine is to be, and by which
// account.
//
// It is pure: it calls no cloud and reads no file, no environment and no clock. What the driver's
// operator gives comes in as an [Environment]; what core resolved for the call, as secrets.
//
// The fields are those of MetaKube and of Kubermatic's machine-controller, under their names. They
// take what these take: an empty string and null mean that a field is not given. A number or a
// truth value may be a string. From Cluster API come ports, serverMetadata, schedulerHints and
// additionalBlockDevices. schema.json describes them all.
//
// # Which fields may come from a Secret
//
// Those are writeOnly in schema.json, and only for them does core resolve references. Kubermatic's
// own example keeps the whole account in one Secret: the address of the cloud, the names in it, and
// even the two times for which it waits. Its manifests would be refused if these were not
// writeOnly. The price is small: their values are not shown in messages. No description in this
// package repeats a value of such a field.
//
// # Whose credentials are used
//
// Three parties can give them, and only one of them does. First comes the spec, with the secrets
// that bear its fields' names. Then comes a Secret given as a whole that holds OS_* variables or a
// clouds.yaml. Last comes the driver's environment. Nothing is mixed: half a login is an error, not
// a hole to be filled by the next.
//
// Credentials go only where who gave them meant them to go. The environment's are used only if the
// spec and its Secrets name no identityEndpoint or the environment's own. They are used with the
// environment's CA bundle alone. Otherwise whoever may write a spec could have the operator's
// password sent to himself. A spec may name another project than the environment does: what the
// operator's user may do there, Keystone decides.
package spec
