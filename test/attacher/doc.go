// Package attacher stands in for a CSI driver, and for the attach-detach controller of
// kube-controller-manager, which the local cluster does not run.
package attacher
