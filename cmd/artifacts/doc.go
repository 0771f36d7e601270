// Package artifacts asks the sites of artifacts for their digests, and fills a mirror with what
// machines download: kubelet, containerd, runc, CNI plugins and crictl. Machines read both as
// core/bootstrap says.
package artifacts
