package vm

import (
	"encoding/json"
	"os"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

// seedLabel is the label that cloud-init looks for. ISO 9660 pads it with spaces.
const seedLabel = "cidata                          "

// writeSeed makes the seed that cloud-init's data source NoCloud reads: a CD labelled cidata. The
// folder and all in it can be read by their owner alone.
// https://docs.cloud-init.io/en/latest/reference/datasources/nocloud.html
func (f Folder) writeSeed(record *Record, userData []byte, bridge Bridge) error {
	metaData, _ := json.Marshal(map[string]string{"instance-id": record.UID, "local-hostname": record.Name}) // these can be written
	files := map[string][]byte{"user-data": userData, "meta-data": metaData}
	if record.Address.IsValid() {
		files["network-config"] = bridge.networkConfig(record.Address)
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
	// It removes the folder that the CD is made from.
	return cd.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: seedLabel})
}
