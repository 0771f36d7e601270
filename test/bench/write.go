package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/audit"
)

// write is one write of the floor.
type write struct {
	of *object
	// turn is its place among all.
	turn                              int
	method, path, contentType, accept string
	body                              []byte
	// marked says that the body names the object's version or uid, which are other ones now.
	marked bool
}

// The marks stand in bodies for what the object is known to be when the write is made.
const (
	versionMark = "@version@"
	uidMark     = "@uid@"
)

const (
	asJSON     = "application/json"
	asProtobuf = runtime.ContentTypeProtobuf
)

// serverUser is who the API server is to itself.
const serverUser = "system:apiserver"

var methods = map[string]string{
	"create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete,
}

// prepare makes of a write in the log one that can be made again; nil for what is none: questions,
// and tokens.
func (r *replay) prepare(ctx context.Context, was *audit.Request) (*write, error) {
	method, known := methods[was.Verb]
	switch was.Resource {
	case "tokenreviews", "subjectaccessreviews", "serviceaccounts/token", "pods/eviction", "pods/binding":
		return nil, nil
	}
	// The API server renews a Lease of its own, and goes on with that.
	if !known || was.User == serverUser {
		return nil, nil
	}
	body := map[string]any{}
	if len(was.Body) > 0 && was.Body[0] == '{' {
		if err := json.Unmarshal(was.Body, &body); err != nil {
			return nil, fmt.Errorf("read what was written to %s: %w", was.URI, err)
		}
	}
	w := &write{method: method, path: was.URI, contentType: asJSON, accept: asJSON}
	var err error
	if w.of, err = r.objectOf(ctx, was, body); err != nil {
		return nil, err
	}
	if w.of.created {
		w.move(was, body)
	}
	w.marked = mark(body)
	if w.body, err = json.Marshal(body); err != nil {
		return nil, fmt.Errorf("encode what was written to %s: %w", was.URI, err)
	}
	if len(body) == 0 {
		w.body = was.Body // Nothing, or a list.
	}
	return w, w.encode(was)
}

// objectOf returns the object that the write is to. Of one that was there before the run its
// version is looked up.
func (r *replay) objectOf(ctx context.Context, was *audit.Request, body map[string]any) (*object, error) {
	resource, _, _ := strings.Cut(was.Resource, "/")
	name := was.Name
	if name == "" {
		name, _ = metadata(body)["name"].(string)
	}
	key := strings.Join([]string{was.Group, resource, was.Namespace, name}, "/")
	o, known := r.objects[key]
	if was.Verb == "create" {
		// One of the same name that is gone by then was another one.
		if !known {
			o = &object{}
			r.objects[key] = o
		}
		o.created = true
		return o, nil
	}
	if known {
		return o, nil
	}
	o = &object{}
	r.objects[key] = o
	path, _, _ := strings.Cut(was.URI, "?")
	if _, sub, is := strings.Cut(was.Resource, "/"); is {
		path = strings.TrimSuffix(path, "/"+sub)
	}
	answer, err := r.do(ctx, &write{method: http.MethodGet, path: path, contentType: asJSON, accept: asJSON}, nil)
	if err != nil {
		return o, ctx.Err() // The write itself will tell.
	}
	o.meta, err = metaOf(answer)
	return o, err
}

func metadata(body map[string]any) map[string]any {
	m, _ := body["metadata"].(map[string]any)
	return m
}

// move puts what the floor creates into a namespace of its own, whose name is of the same size. An
// Event about an object without a namespace has to stay in its own: it gets another name.
func (w *write) move(was *audit.Request, body map[string]any) {
	if was.Namespace == "" {
		return
	}
	meta := metadata(body)
	if was.Resource == "events" {
		about, _ := body["regarding"].(map[string]any)
		if about == nil {
			about, _ = body["involvedObject"].(map[string]any)
		}
		if about != nil && about["namespace"] == nil {
			if name, ok := meta["name"].(string); ok {
				meta["name"] = name + "f"
			}
			return
		}
		if about != nil {
			about["namespace"] = floorNamespace
		}
	}
	w.path = strings.Replace(w.path, "/namespaces/"+was.Namespace+"/", "/namespaces/"+floorNamespace+"/", 1)
	if meta != nil && meta["namespace"] != nil {
		meta["namespace"] = floorNamespace
	}
}

// mark replaces the object's version and uid, and says whether there was any.
func mark(body map[string]any) bool {
	marked := false
	for _, at := range []string{"metadata", "preconditions"} {
		in, _ := body[at].(map[string]any)
		for field, mark := range map[string]string{"resourceVersion": versionMark, "uid": uidMark} {
			if s, ok := in[field].(string); ok && s != "" {
				in[field], marked = mark, true
			}
		}
	}
	return marked
}

var protobufEncoder = func() runtime.Encoder {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme) // Never fails.
	return protobuf.NewSerializer(scheme, scheme)
}()

// encode chooses the form in which the write was made the first time: the log does not tell.
func (w *write) encode(was *audit.Request) error {
	builtIn := was.Group == "" || was.Group == "coordination.k8s.io"
	if builtIn {
		w.accept = asProtobuf + "," + asJSON
	}
	switch {
	case was.Verb == "patch":
		w.contentType = string(patchType(was, w.body))
	case was.Verb == "create" && was.Resource == "nodes":
		return w.encodeNode()
	}
	return nil
}

// patchType is how the patch was meant: core merges, but for Events; others merge strategically
// where the kind allows it.
func patchType(was *audit.Request, body []byte) types.PatchType {
	switch {
	case bytes.HasPrefix(body, []byte("[")):
		return types.JSONPatchType
	case strings.Contains(was.URI, "force=true"):
		return types.ApplyYAMLPatchType
	case was.Group == clusterv1alpha1.GroupVersion.Group, was.User == stack.ManagerUser && was.Resource != "events":
		return types.MergePatchType
	default:
		return types.StrategicMergePatchType
	}
}

// encodeNode encodes a Node as kubelets do.
func (w *write) encodeNode() error {
	node := &corev1.Node{}
	if err := json.Unmarshal(w.body, node); err != nil {
		return fmt.Errorf("read a Node: %w", err)
	}
	var encoded bytes.Buffer
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := protobufEncoder.Encode(node, &encoded); err != nil {
		return fmt.Errorf("encode a Node: %w", err)
	}
	w.body, w.contentType = encoded.Bytes(), asProtobuf
	return nil
}
