package vm

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

// Bridge is a bridge of the host, and the addresses on it that VMs get.
type Bridge struct {
	// Name is the bridge's; empty where there is none.
	Name string
	// First and Last are the addresses that VMs get, Bits how long their network's prefix is.
	First, Last netip.Addr
	Bits        int
	Gateway     netip.Addr
	// Nameservers may be empty.
	Nameservers []netip.Addr
}

// mac is a MAC address that follows from an IPv4 address: two VMs on a bridge never share one.
// 52:54 begins those that QEMU's users make up themselves.
func mac(address netip.Addr) string {
	four := address.As4()
	return fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", four[0], four[1], four[2], four[3])
}

// networkConfig is cloud-init's network configuration, version 2, of a VM on the bridge. JSON is
// YAML.
func (b Bridge) networkConfig(address netip.Addr) ([]byte, error) {
	ethernet := map[string]any{
		"match":     map[string]any{"macaddress": mac(address)},
		"addresses": []string{netip.PrefixFrom(address, b.Bits).String()},
		"routes":    []map[string]any{{"to": "0.0.0.0/0", "via": b.Gateway.String()}},
		"accept-ra": false,
	}
	if len(b.Nameservers) > 0 {
		ethernet["nameservers"] = map[string]any{"addresses": b.Nameservers}
	}
	return json.Marshal(map[string]any{"version": 2, "ethernets": map[string]any{"id0": ethernet}})
}

// seedLabel is the label that cloud-init looks for. ISO 9660 pads it with spaces.
const seedLabel = "cidata                          "

// writeSeed makes the seed that cloud-init's data source NoCloud reads: a CD labelled cidata. The
// folder and all in it can be read by their owner alone.
// https://docs.cloud-init.io/en/latest/reference/datasources/nocloud.html
func (f Folder) writeSeed(record *Record, userData []byte, bridge Bridge) error {
	metaData, err := json.Marshal(map[string]string{"instance-id": record.UID, "local-hostname": record.Name})
	if err != nil {
		return err
	}
	files := map[string][]byte{"user-data": userData, "meta-data": metaData}
	if record.Address.IsValid() {
		if files["network-config"], err = bridge.networkConfig(record.Address); err != nil {
			return err
		}
	}
	work := Folder(f.file(seedFolder))
	if err := os.Mkdir(string(work), 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(work.file(name), content, 0o600); err != nil {
			return err
		}
	}
	iso, err := os.OpenFile(f.file(seedFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer iso.Close()
	cd, err := iso9660.Create(file.New(iso, false), 0, 0, 0, string(work))
	if err != nil {
		return err
	}
	if err := cd.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: seedLabel}); err != nil {
		return err
	}
	return os.RemoveAll(string(work))
}
