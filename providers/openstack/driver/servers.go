package driver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/sdk"
)

// server is what the driver reads of a server of Nova.
type server struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Status      string    `json:"status"`
	TaskState   string    `json:"OS-EXT-STS:task_state"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
	// Launched is when the server first ran, or ran anew; nil before. Nova never clears it.
	Launched *string `json:"OS-SRV-USG:launched_at"`
	// HostID tells hosts apart; empty before the scheduler has found one.
	HostID    string               `json:"hostId"`
	Metadata  map[string]string    `json:"metadata"`
	Tags      []string             `json:"tags"`
	Zone      string               `json:"OS-EXT-AZ:availability_zone"`
	Flavor    serverFlavor         `json:"flavor"`
	Image     serverImage          `json:"image"`
	Addresses map[string][]address `json:"addresses"`
	Fault     fault                `json:"fault"`
	Volumes   []attachedVolume     `json:"os-extended-volumes:volumes_attached"`
}

type serverFlavor struct {
	Name string `json:"original_name"`
}

// serverImage is the id of a server's image; empty for one that boots from a volume, of which Nova
// says "" instead of an object.
type serverImage struct{ ID string }

// UnmarshalJSON reads {"id": …} or "".
func (i *serverImage) UnmarshalJSON(raw []byte) error {
	if string(raw) == `""` {
		return nil
	}
	type plain struct {
		ID string `json:"id"`
	}
	var image plain
	err := json.Unmarshal(raw, &image)
	i.ID = image.ID
	return err
}

type address struct {
	IP   string `json:"addr"`
	Kind string `json:"OS-EXT-IPS:type"`
}

// attachedVolume is the id of a volume that a server has.
type attachedVolume struct {
	ID string `json:"id"`
}

// fault is why a server is in ERROR.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (s server) identity() string { return s.ID }

// owner returns whose the server is.
func (s server) owner() (ownership.Owner, bool) { return ownership.FromMetadata(s.Metadata) }

func (s server) compareAge(other server) int {
	return cmp.Or(s.Created.Compare(other.Created), cmp.Compare(s.ID, other.ID))
}

// addresses returns the server's addresses, those of one network after the other.
func (s server) addresses() []*driverv1alpha1.MachineAddress {
	all := []*driverv1alpha1.MachineAddress{{Type: driverv1alpha1.AddressType_ADDRESS_TYPE_HOSTNAME, Address: s.Name}}
	for _, network := range slices.Sorted(maps.Keys(s.Addresses)) {
		for _, a := range s.Addresses[network] {
			kind := driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_IP
			if a.Kind == "floating" {
				kind = driverv1alpha1.AddressType_ADDRESS_TYPE_EXTERNAL_IP
			}
			all = append(all, &driverv1alpha1.MachineAddress{Type: kind, Address: a.IP})
		}
	}
	return all
}

// serversOf returns the servers of machines by uid, the oldest first.
func (f *faults) serversOf(ctx context.Context, where clusterScope, uids []string) (map[string][]server, error) {
	var tags []string
	for _, uid := range uids {
		tags = append(tags, ownership.MachineTag(uid))
	}
	found, err := f.servers(ctx, where.cloud, url.Values{
		"tags": {ownership.ClusterTag(where.cluster)}, "tags-any": {strings.Join(tags, ",")},
	})
	if err != nil {
		return nil, err
	}
	return grouped(found, func(s server) string {
		if owner, _ := s.owner(); owner.Cluster == where.cluster {
			return owner.UID
		}
		return "" // a Nova that does not obey the filter
	}, server.compareAge), nil
}

// changes finds servers that have come, changed or gone recently.
type changes struct{ Options }

// recentKey names the machine of an owner among those whose servers are looked for.
func recentKey(o ownership.Owner) string { return nameAndDescription(o.ServerName(), o.Description()) }

func nameAndDescription(name, description string) string { return name + "\x00" + description }

// recentOf returns the servers of machines that have come, changed or gone recently, by key. Nova
// lists the deleted ones without metadata and tags, but with name and description. Its filter of
// names is a regular expression without alternatives, and there is none of descriptions for
// ordinary users: so what the names of all have in common is asked for.
func (c changes) recentOf(ctx context.Context, where clusterScope, keys []string) (map[string][]server, error) {
	since := c.Clock().Add(-c.CreateSettle - recentFor)
	name, _, _ := strings.Cut(keys[0], "\x00")
	whole := "$"
	for _, key := range keys[1:] {
		other, _, _ := strings.Cut(key, "\x00")
		name, whole = commonPrefix(name, other), ""
	}
	changed, err := listing[server](ctx, where.cloud.Compute, "servers/detail", "servers", url.Values{
		"changes-since": {since.UTC().Format(time.RFC3339)}, "name": {"^" + regexp.QuoteMeta(name) + whole},
	})
	if err != nil {
		return nil, err
	}
	return grouped(changed, func(s server) string { return nameAndDescription(s.Name, s.Description) }, server.compareAge), nil
}

func commonPrefix(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[:i]
		}
	}
	return a[:min(len(a), len(b))]
}

// serversHiddenFromLists returns the machine's servers that Nova leaves out of its lists but whose
// ids are known. They are those that Nova has given up for deletion and may still restore, and
// those in a cell that is down. Both keep their ports; a server that is gone has let go of them.
func serversHiddenFromLists(ctx context.Context, scope machineScope, ports []port) ([]server, error) {
	ids := map[string]bool{}
	for _, p := range ports {
		if p.DeviceID != "" {
			ids[p.DeviceID] = true
		}
	}
	if scope.serverID != "" && len(ports) == 0 {
		ids[scope.serverID] = true
	}
	var found []server
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		known, err := getServer(ctx, scope.cloud, id)
		if err != nil && !session.IsGone(err) {
			return nil, session.Explain(err)
		}
		if err != nil || known.Status == statusDeleted {
			continue
		}
		if known.Metadata == nil {
			// All that Nova tells of a server in a cell that is down, in its newer versions.
			return nil, sdk.NewUnknownOutcome("Nova cannot say now whose the server " + id + " is.")
		}
		if owner, marked := known.owner(); marked && owner.Cluster == scope.owner.Cluster && owner.UID == scope.owner.UID {
			found = append(found, known)
		}
	}
	slices.SortFunc(found, server.compareAge)
	return found, nil
}

func getServer(ctx context.Context, in *session.Session, id string) (server, error) {
	var answer struct {
		Server server `json:"server"`
	}
	_, err := in.Compute.Get(ctx, in.Compute.ServiceURL("servers", id), &answer, nil) //nolint:bodyclose // gophercloud closes it
	return answer.Server, err
}

// body is what Nova is asked for.
type body struct {
	servers.CreateOpts
	description string
	networks    []servers.Network
	hints       hints
	flavorName  string
}

// ToServerCreateMap implements servers.CreateOptsBuilder, which knows no description.
func (b body) ToServerCreateMap() (map[string]any, error) {
	b.CreateOpts.Networks = b.networks
	request, err := b.CreateOpts.ToServerCreateMap()
	if err != nil {
		return nil, fmt.Errorf("describe the server: %w", err)
	}
	if inner, is := request["server"].(map[string]any); is {
		inner["description"] = b.description
	}
	return request, nil
}

// hints are scheduler hints as the user wrote them.
type hints map[string]any

// ToSchedulerHintsMap implements servers.SchedulerHintOptsBuilder: what goes beside the server in
// the request.
func (h hints) ToSchedulerHintsMap() (map[string]any, error) {
	if len(h) == 0 {
		return nil, nil
	}
	return map[string]any{"os:scheduler_hints": map[string]any(h)}, nil
}

// withKeyPair names the key pair, where there is one.
func withKeyPair(b body, name string) servers.CreateOptsBuilder {
	if name == "" {
		return b
	}
	return keypairs.CreateOptsExt{CreateOptsBuilder: b, KeyName: name}
}

// flavor looks it up. Its ephemeral disk has to hold the local ones: Nova refuses a server else.
func (p planner) flavor(ctx context.Context) (session.Flavor, error) {
	flavor, err := p.cloud.Flavor(ctx, "flavor", p.want.Flavor)
	if err != nil {
		return flavor, err
	}
	local := 0
	for i, v := range p.want.Volumes {
		if v.IsLocal {
			local += v.SizeGB
		}
		if local > flavor.EphemeralGB {
			message := fmt.Sprintf("Local disks of %d GiB do not fit into the %d GiB of ephemeral disk that the flavor %s has.", local, flavor.EphemeralGB, flavor.Name)
			return flavor, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, message,
				sdk.WithField(fmt.Sprintf("additionalBlockDevices[%d].sizeGiB", i), message))
		}
	}
	return flavor, nil
}

// server looks up what the spec names of the server.
func (p planner) server(ctx context.Context, image string) (body, error) {
	flavor, err := p.flavor(ctx)
	if err != nil {
		return body{}, err
	}
	b := body{
		CreateOpts: servers.CreateOpts{
			Name: p.owner.ServerName(), FlavorRef: flavor.ID, ImageRef: image, AvailabilityZone: p.want.AvailabilityZone,
			// Base64 here: gophercloud would take user data that happens to look like base64 for
			// what it is not.
			UserData: []byte(base64.StdEncoding.EncodeToString(p.userData)),
			Metadata: p.metadata(), ConfigDrive: p.want.ConfigDrive, Tags: p.tags(),
		},
		description: p.owner.Description(), flavorName: flavor.Name, hints: maps.Clone(p.want.SchedulerHints),
	}
	if p.want.RootDisk != nil {
		b.ImageRef = ""
	}
	if p.want.ServerGroup == "" {
		return b, nil
	}
	group, err := p.cloud.ServerGroupID(ctx, p.want.ServerGroupField, p.want.ServerGroup)
	if err != nil {
		return body{}, err
	}
	if b.hints == nil {
		b.hints = hints{}
	}
	b.hints["group"] = group
	return b, nil
}

// metadata is the users' and the request's, under the marks.
func (p planner) metadata() map[string]string {
	all := map[string]string{}
	for key, value := range p.requestTags {
		all[metadataKey(key)] = value[:min(len(value), maxMetadata)]
	}
	maps.Copy(all, p.want.Metadata)
	maps.Copy(all, p.owner.Metadata())
	return all
}

// maxMetadata is the longest key and the longest value of metadata that Nova takes.
const maxMetadata = 255

// metadataKey is a key of the request's tags as Nova takes it: an underscore stands for what it
// refuses, such as '/'.
func metadataKey(key string) string {
	plain := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_:. ", r)) {
			return r
		}
		return '_'
	}, key)
	return plain[:min(len(plain), maxMetadata)]
}

// tags are the users' and the marks.
func (p planner) tags() []string {
	return append(slices.Clone(p.want.Tags), ownership.ClusterTag(p.owner.Cluster), ownership.MachineTag(p.owner.UID))
}
