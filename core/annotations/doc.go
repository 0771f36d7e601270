// Package annotations reads what users and autoscalers ask of an object by annotation. The keys and
// what they mean stand in api/v1alpha1. It is pure, and every function is nil-safe on absent maps.
package annotations
