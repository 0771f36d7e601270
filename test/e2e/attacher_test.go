package e2e

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/test/attacher"
)

// userVolumes are the volumes of a user's pods, which an attacher attaches and detaches.
type userVolumes struct {
	*attacher.Attacher

	u *user
}

// runAttacher begins to attach volumes; that ends with the test, and the volumes go.
func (u *user) runAttacher() *userVolumes {
	v := &userVolumes{Attacher: attacher.New(u.client, u.own), u: u}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.Run(ctx, func(err error) { u.t.Log(err) })
	}()
	u.t.Cleanup(func() {
		cancel()
		<-done
		v.clear()
	})
	return v
}

// awaitAttached waits until these volumes are attached and in use. It returns their Nodes.
func (v *userVolumes) awaitAttached(volumes ...string) map[string]string {
	v.u.t.Helper()
	var nodes map[string]string
	eventually(v.u.t, "the volumes to be attached", func(ctx context.Context) error {
		attached, err := v.Attachments(ctx)
		nodes = map[string]string{}
		for _, one := range attached {
			if one.Status.Attached && v.IsUsed(one.Name) {
				nodes[*one.Spec.Source.PersistentVolumeName] = one.Spec.NodeName
			}
		}
		for _, volume := range volumes {
			if nodes[volume] == "" {
				return fmt.Errorf("attached are %v, %w", nodes, err)
			}
		}
		return err
	})
	return nodes
}

// clear removes what is left of the volumes. Nobody else does: the finalizers that protect claims
// and volumes are there, and the controllers that take them away are not.
func (v *userVolumes) clear() {
	ctx := context.Background()
	left, err := v.Attachments(ctx)
	for i := range left {
		err = client.IgnoreNotFound(v.u.client.Delete(ctx, &left[i]))
	}
	if err != nil {
		v.u.t.Errorf("delete VolumeAttachments: %v", err)
	}
	for _, kind := range []string{"persistentvolumeclaims", "persistentvolumes"} {
		names, err := v.u.try(nil, "get", kind, "-l", "user="+v.u.own, "-o", "name")
		for name := range strings.FieldsSeq(names) {
			if err == nil {
				_, err = v.u.try(nil, "patch", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			}
			if err == nil {
				_, err = v.u.try(nil, "delete", name)
			}
		}
		if err != nil {
			v.u.t.Errorf("delete %s: %v", names, err)
		}
	}
}

// volumeOf is the PersistentVolume of a claim.
func (u *user) volumeOf(claim string) string { return attacher.VolumeOf(u.own, claim) }

// claim renders a claim and its volume, bound to each other as by the controller that the local
// cluster does not run.
func (u *user) claim(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[3]s, labels: {user: %[1]s}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: %[1]s, name: %[2]s}
  hostPath: {path: /nowhere}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[2]s, labels: {user: %[1]s}, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec:
  resources: {requests: {storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: %[3]s
---
`, u.own, name, u.volumeOf(name))
}
