// Package providerspec is what core knows of a cloudProviderSpec without knowing a cloud. The
// spec is a JSON object whose layers are merged, and in which strings can be references to
// Secrets and ConfigMaps. A driver may publish a JSON Schema of it. The schema says what is
// wrong with a spec, which fields are secret and which hold the address of a cloud. The package
// is pure; numbers stay as they were written.
//
// Read reference.go first; check.go says how a schema is applied.
package providerspec
