// Package providerspec is what core knows of a cloudProviderSpec without knowing a cloud: it is a
// JSON object whose layers are merged, and in which strings can be references to Secrets and
// ConfigMaps. It is pure; numbers stay as they were written.
package providerspec
