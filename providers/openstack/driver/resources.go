package driver

import (
	"encoding/json"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/ownership"
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

// attachedVolume is the id of a volume that a server has.
type attachedVolume struct {
	ID string `json:"id"`
}

type serverFlavor struct {
	Name string `json:"original_name"`
}

type address struct {
	IP   string `json:"addr"`
	Kind string `json:"OS-EXT-IPS:type"`
}

// fault is why a server is in ERROR.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// serverImage is the id of a server's image; empty for one that boots from a volume, of which Nova
// says "" instead of an object.
type serverImage struct{ ID string }

func (s server) identity() string { return s.ID }

// owner returns whose the server is.
func (s server) owner() (ownership.Owner, bool) { return ownership.FromMetadata(s.Metadata) }

// port is what the driver reads of a port of Neutron.
type port struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	Description string        `json:"description"`
	NetworkID   string        `json:"network_id"`
	MAC         string        `json:"mac_address"`
	DeviceID    string        `json:"device_id"`
	Created     time.Time     `json:"created_at"`
	Tags        []string      `json:"tags"`
	Trunk       *trunkDetails `json:"trunk_details"`
}

type trunkDetails struct {
	ID string `json:"trunk_id"`
}

func (p port) identity() string { return p.ID }

// floatingIP is what the driver reads of a floating IP of Neutron.
type floatingIP struct {
	ID          string    `json:"id"`
	Description string    `json:"description"`
	PortID      string    `json:"port_id"`
	IP          string    `json:"floating_ip_address"`
	Created     time.Time `json:"created_at"`
}

func (f floatingIP) identity() string { return f.ID }

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
