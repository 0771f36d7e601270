package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// machineScope is the machine that a call is about, and a session in its project.
type machineScope struct {
	owner ownership.Owner
	cloud *session.Session
	// serverID is the server's, as far as core has been told; else empty.
	serverID string
	// withoutFloatingIP and withoutVolumes say that none was made for the machine.
	withoutFloatingIP, withoutVolumes bool
}

// clusterScope is a cluster in a project: what reads of several machines have in common.
type clusterScope struct {
	cloud   *session.Session
	cluster string
}

func (s machineScope) clusterScope() clusterScope {
	return clusterScope{cloud: s.cloud, cluster: s.owner.Cluster}
}

// machineCall is what every request about one machine has.
type machineCall interface {
	GetMeta() *driverv1alpha1.RequestMeta
	GetMachine() *driverv1alpha1.MachineRef
	GetLastKnownState() []byte
}

// statusCall is a request about a machine that is to be there.
type statusCall interface {
	machineCall
	GetProvider() *driverv1alpha1.ProviderContext
}

// location is where a machine is made: its last known state, which core keeps for this driver.
type location struct {
	// Project is the project's id, or its hash.
	Project string `json:"project"`
	Region  string `json:"region,omitempty"`
	// WithoutVolumes says that no volume was made for the machine: Cinder need not be asked.
	WithoutVolumes bool `json:"withoutVolumes,omitempty"`
}

// locationOf is where a session's machines are made.
func locationOf(s *session.Session, withoutVolumes bool) location {
	return location{Project: s.ProjectID, Region: s.Region, WithoutVolumes: withoutVolumes}
}

// encode is what core is given.
func (p location) encode() []byte {
	state, _ := json.Marshal(p) // strings cannot fail
	return state
}

// handedOver is encode for an error, with the project as a hash. A state that holds a secret is
// left out of errors, and the project's id may have come as one.
func (p location) handedOver() []byte {
	p.Project = hashOf(p.Project)
	return p.encode()
}

// projectHash begins the hash of a project's id.
const projectHash = "sha256:"

func hashOf(project string) string {
	sum := sha256.Sum256([]byte(project))
	return projectHash + hex.EncodeToString(sum[:])
}

// isIn says whether a project is where the machine was made, as far as the state tells.
func (p location) isIn(project string) bool {
	return p.Project == "" || p.Project == project || p.Project == hashOf(project)
}

// open returns the scope of a call. A project that is not the machine's is an error: there,
// everything would look gone.
func (d *Driver) open(ctx context.Context, r machineCall, account spec.Account, apiVersion string) (machineScope, error) {
	opened, err := d.sessions.Open(ctx, account, apiVersion)
	if err != nil {
		return machineScope{}, err
	}
	ref := r.GetMachine()
	scope := machineScope{
		owner: ownership.Owner{
			Cluster: r.GetMeta().GetClusterUid(), Namespace: ref.GetNamespace(), Name: ref.GetName(), UID: ref.GetUid(),
		},
		cloud: opened, serverID: serverIDOf(r),
	}
	var made location
	// A state that cannot be read is like one that was lost: nothing depends on it.
	_ = json.Unmarshal(r.GetLastKnownState(), &made)
	scope.withoutVolumes = made.WithoutVolumes
	return scope, scope.elsewhere(made)
}

// elsewhere returns an error where the machine was made in another project or region than the
// credentials open.
func (s machineScope) elsewhere(made location) error {
	var message string
	switch {
	case !made.isIn(s.cloud.ProjectID):
		where := made.Project
		if strings.HasPrefix(where, projectHash) {
			where = "another"
		}
		message = "The credentials open the project " + s.cloud.ProjectID + ", the machine was made in " + where + "."
	case made.Region != "" && made.Region != s.cloud.Region:
		message = "The credentials open the region " + s.cloud.Region + ", the machine was made in " + made.Region + "."
	default:
		return nil
	}
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED, message, sdk.WithPartialState("", made.encode()))
}

// existing opens the scope of a call about a machine that may exist: only the account of its spec
// matters.
func (d *Driver) existing(ctx context.Context, r machineCall, provider *driverv1alpha1.ProviderContext) (machineScope, error) {
	account, err := spec.ReadAccount(provider.GetProviderSpec(), provider.GetSecrets(), d.options.Environment)
	if err != nil {
		return machineScope{}, err
	}
	return d.open(ctx, r, account, spec.MinComputeAPIVersion)
}

// known returns what there is of a machine. Nothing, and what was made for another name, are
// errors.
func (d *Driver) known(ctx context.Context, r statusCall) (machineScope, *ownedResources, error) {
	scope, err := d.existing(ctx, r, r.GetProvider())
	if err != nil {
		return scope, nil, err
	}
	found, err := d.find(ctx, scope)
	if err != nil {
		return scope, nil, err
	}
	if found.empty() {
		return scope, nil, notFound()
	}
	return scope, found, found.nameTaken(scope.owner)
}

// notFound says that there is nothing of a machine.
func notFound() error {
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND, "The project has no server of this machine.")
}
