// Package schema reads the JSON Schema by which a driver explains its cloudProviderSpec: what is
// wrong with a spec, which fields are secret, and which hold the address of a cloud.
package schema
