package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// application is how files are to be applied; the flags are those of `kubectl apply`.
type application struct {
	names                           []string
	recursive, serverSide, isForced bool
	manager                         string
}

func (a *application) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&a.names, "filename", "f", nil, "Files, directories or URLs with MachineDeployments; - for standard input.")
	flags.BoolVarP(&a.recursive, "recursive", "R", false, "Look into directories below those of --filename, too.")
	flags.BoolVar(&a.serverSide, "server-side", false, "Plan what `kubectl apply --server-side` would do.")
	flags.StringVar(&a.manager, "field-manager", "kubectl", "The field manager that applies on the server's side.")
	flags.BoolVar(&a.isForced, "force-conflicts", false, "Take over fields that other managers have, on the server's side.")
}

// dryRun returns the MachineDeployments of the files, as they are and as the API server would make
// them. It tells of the objects of other kinds, which it leaves out.
func (a *application) dryRun(ctx context.Context, where *cluster, api client.Client, warnings io.Writer) ([]change, error) {
	namespace, isEnforced, err := where.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	infos, err := resource.NewBuilder(where.flags).Unstructured().NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(isEnforced, &resource.FilenameOptions{Filenames: a.names, Recursive: a.recursive}).Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	var changes []change
	for _, info := range infos {
		wanted, ok := info.Object.(*unstructured.Unstructured)
		if !ok || wanted.GroupVersionKind() != clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineDeploymentKind) {
			_, _ = fmt.Fprintf(warnings, "%s: %s %s is not planned\n", info.Source, info.Object.GetObjectKind().GroupVersionKind().Kind, info.Name)
			continue
		}
		wanted.SetNamespace(info.Namespace)
		c, err := a.change(ctx, api, wanted)
		if err != nil {
			return nil, fmt.Errorf("%s: machinedeployment %q: %w", info.Source, info.Name, err)
		}
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return nil, errors.New("--filename: there is no MachineDeployment in it")
	}
	return changes, nil
}

// change asks the API server what it would make of an object.
func (a *application) change(ctx context.Context, api client.Client, wanted *unstructured.Unstructured) (change, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := api.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	isNew := apierrors.IsNotFound(err)
	if client.IgnoreNotFound(err) != nil {
		return change{}, err
	}
	answer := wanted.DeepCopy()
	switch {
	case a.serverSide:
		options := []client.ApplyOption{client.DryRunAll, client.FieldOwner(a.manager)}
		if a.isForced {
			options = append(options, client.ForceOwnership)
		}
		err = api.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), options...)
	case isNew:
		err = api.Create(ctx, answer, client.DryRunAll)
	default:
		var patch []byte
		if patch, err = threeWay(live, wanted); err != nil {
			return change{}, err
		}
		err = api.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
	}
	if err != nil {
		return change{}, err
	}
	var c change
	if c.after, err = deploymentOf(answer); err == nil && !isNew {
		c.before, err = deploymentOf(live)
	}
	return c, err
}

func deploymentOf(object *unstructured.Unstructured) (*clusterv1alpha1.MachineDeployment, error) {
	md := &clusterv1alpha1.MachineDeployment{}
	return md, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, md)
}

// threeWay is the patch of `kubectl apply`: it also takes away what was applied last and is wanted
// no more.
func threeWay(live, wanted *unstructured.Unstructured) ([]byte, error) {
	is, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	want, err := wanted.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(live.GetAnnotations()[lastApplied]), want, is)
}

// lastApplied is where `kubectl apply` keeps what it has applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
