package apicases_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// TestWorld wants the real services to be brought up with what the simulator has.
func TestWorld(t *testing.T) {
	_ = os.Getenv("MILLWRIGHT_INPUTS") // so that Go runs the test again when they change: tools/inputs.sh
	file, err := os.Open(filepath.Join("..", "..", "..", "..", "test", "openstack", "world.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	world, err := openstacksim.ReadWorld(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(openstacksim.DefaultWorld(), world); diff != "" {
		t.Errorf("test/openstack/world.json differs (-simulator +file):\n%s", diff)
	}
}
