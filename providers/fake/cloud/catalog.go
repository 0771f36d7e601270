package cloud

import "slices"

// What this cloud sells.
const region = "fake-1"

var (
	flavors = []string{"small", "medium", "large"}
	images  = []string{"ubuntu-22.04", "ubuntu-24.04", "flatcar-stable"}
	zones   = []string{"fake-1a", "fake-1b", "fake-1c"}
)

// maxUserData is the most bytes of user data that a VM takes.
const maxUserData = 64 << 10

// checkCatalog returns an error when something is named that is not sold. An empty zone is fine.
func checkCatalog(flavor, image, zone string) error {
	if !slices.Contains(flavors, flavor) {
		return noDependency("flavor", flavor)
	}
	if !slices.Contains(images, image) {
		return noDependency("image", image)
	}
	if zone != "" && !slices.Contains(zones, zone) {
		return noDependency("zone", zone)
	}
	return nil
}
