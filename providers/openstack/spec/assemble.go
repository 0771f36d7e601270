package spec

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// machine returns all of the Spec but its Account.
func (f *fields) machine(found *findings) Spec {
	s := Spec{
		ComputeAPIVersion: cmp.Or(f.ComputeAPIVersion, MinComputeAPIVersion),
		AvailabilityZone:  f.AvailabilityZone,
		Flavor:            f.Flavor,
		Image:             f.Image,
		KeyPair:           f.SSHKeyName,
		RootDisk:          f.rootDisk(found),
		Volumes:           f.volumes(found),
		Ports:             f.ports(found),
		SecurityGroups:    given(f.SecurityGroups),
		FloatingIPPool:    f.FloatingIPPool,
		FloatingIPReuse:   f.FloatingIPReuse.isTrue("floatingIpReuse", found),
		FloatingIPs:       given(f.FloatingIPs),
		ServerGroup:       found.alias("serverGroup", f.ServerGroup, "serverGroupID", f.ServerGroupID),
		ConfigDrive:       f.ConfigDrive.read("configDrive", found),
		SchedulerHints:    f.SchedulerHints,
	}
	f.checkUnused(found)
	s.ServerGroupField = "serverGroup"
	if f.ServerGroup == "" && f.ServerGroupID != "" {
		s.ServerGroupField = "serverGroupID"
	}
	least, _ := minorOf(MinComputeAPIVersion)
	if minor, valid := minorOf(s.ComputeAPIVersion); !valid || minor < least {
		found.add("computeAPIVersion", "must be a microversion of Nova's API 2, at least %s; leave it out for that one", MinComputeAPIVersion)
	}
	s.Metadata, s.Tags = f.labels(found)
	f.checkReferences(found)
	if s.Flavor == "" {
		found.add("flavor", "must be set: the name or the id of a flavor")
	}
	if s.Image == "" {
		found.add("image", "must be set: the name or the id of an image")
	}
	if _, has := s.SchedulerHints["group"]; has {
		found.add("schedulerHints.group", "must not be set: name the group as serverGroup")
	}
	s.checkFloatingIPs(found)
	return s
}

func (s Spec) checkFloatingIPs(found *findings) {
	own := slices.ContainsFunc(s.Ports, func(p Port) bool { return p.ID == "" })
	for field, isSet := range map[string]bool{"floatingIpPool": s.FloatingIPPool != "", "floatingIPs": len(s.FloatingIPs) > 0} {
		if isSet && !own {
			found.add(field, "cannot be used: all ports exist already and are not touched; give one of them a floating IP yourself, or add a port without id")
		}
	}
	if s.FloatingIPPool != "" && len(s.FloatingIPs) > 0 {
		found.add("floatingIPs", "cannot be used beside floatingIpPool: leave one of the two out")
	}
	if s.FloatingIPReuse && s.FloatingIPPool == "" {
		found.add("floatingIpReuse", "is only for floatingIpPool: set that, too, or leave this out")
	}
	for i, address := range s.FloatingIPs {
		if !validAddress(address) {
			found.add(element("floatingIPs", i), "must be an IP address")
		}
	}
}

// checkReferences notes what is wrong with the references that stand above the ports.
func (f *fields) checkReferences(found *findings) {
	f.Image.check("image", found)
	if f.Image.Filter().Description != "" {
		found.add("image.description", "must not be set: images have none")
	}
	f.Network.check("network", found)
	f.Subnet.check("subnet", found)
	checkReferences("networks", f.Networks, found)
	checkReferences("securityGroups", f.SecurityGroups, found)
}

func (f *fields) rootDisk(found *findings) *RootDisk {
	size := f.RootDiskSizeGB.read("rootDiskSizeGB", 1, found)
	if size != nil {
		return &RootDisk{SizeGB: *size, VolumeType: f.RootDiskVolumeType, AvailabilityZone: f.RootDiskAvailabilityZone}
	}
	for name, value := range map[string]string{"rootDiskVolumeType": f.RootDiskVolumeType, "rootDiskAvailabilityZone": f.RootDiskAvailabilityZone} {
		if value != "" && !f.RootDiskSizeGB.wrong && f.RootDiskSizeGB.value == nil {
			found.add(name, "is only for a root disk that is a volume: set rootDiskSizeGB, too, or leave this out")
		}
	}
	return nil
}

// The kinds of storage of a disk, in Cluster API's terms: a volume of Cinder, or the host's own
// disk.
const (
	volumeStorage = "Volume"
	localStorage  = "Local"
)

func (f *fields) volumes(found *findings) []Volume {
	var all []Volume
	for i, device := range f.AdditionalBlockDevices {
		at := element("additionalBlockDevices", i)
		v := Volume{
			Name: device.Name, VolumeType: device.Storage.Volume.Type, AvailabilityZone: device.Storage.Volume.AvailabilityZone,
			IsLocal: device.Storage.Type == localStorage,
		}
		switch {
		case v.Name == "":
			found.add(at+".name", "must be set")
		case strings.EqualFold(v.Name, "root"):
			found.add(at+".name", "must not be root, which is the root disk's")
		case !validTag(v.Name):
			found.add(at+".name", "must be at most %d characters long, without '/' and ','", maxTagLength)
		case slices.ContainsFunc(all, func(other Volume) bool { return other.Name == v.Name }):
			found.add(at+".name", "is the name of another before it: names must differ")
		}
		if size := device.SizeGiB.read(at+".sizeGiB", 1, found); size != nil {
			v.SizeGB = *size
		}
		if device.SizeGiB.value == nil {
			found.add(at+".sizeGiB", "must be set")
		}
		switch storage := device.Storage.Type; {
		case !slices.Contains([]string{"", volumeStorage, localStorage}, storage):
			found.add(at+".storage.type", "must be %s or %s", volumeStorage, localStorage)
		case v.IsLocal && device.Storage.Volume != (volumeFields{}):
			found.add(at+".storage.volume", "cannot be used, since storage.type is %s: leave one of the two out", localStorage)
		}
		all = append(all, v)
	}
	return all
}

// labels returns metadata and tags of the server.
func (f *fields) labels(found *findings) (metadata map[string]string, list []string) {
	pairs, written := f.Tags.read(found)
	metadata = map[string]string{}
	addMetadata(metadata, "tags", pairs, found)
	addMetadata(metadata, "serverMetadata", f.ServerMetadata, found)
	for i, tag := range written {
		at := element("tags", i)
		switch {
		case tag == "" || slices.Contains(list, tag):
			continue
		case !validTag(tag):
			found.add(at, "must be at most %d characters long, without '/' and ','", maxTagLength)
		case reserved(tag):
			found.add(at, "must not begin with %s, which the driver's own do", ReservedPrefix)
		}
		list = append(list, tag)
	}
	if len(list) > MaxTags {
		found.add("tags", "must be at most %d", MaxTags)
	}
	return metadata, list
}

// metadataKey is what Nova takes as a key.
var metadataKey = regexp.MustCompile(`^[a-zA-Z0-9\-_:. ]{1,255}$`)

// maxMetadataValue is how long Nova lets a value be, in characters.
const maxMetadataValue = 255

func addMetadata(to map[string]string, field string, pairs map[string]string, found *findings) {
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[key]
		at := below(field, key)
		other, has := to[key]
		switch {
		case !metadataKey.MatchString(key):
			found.add(at, "must have a key of 1 to 255 letters, digits, blanks and characters of '-_:.': Nova takes no other")
		case reserved(key):
			found.add(at, "must not begin with %s, which the driver's own do", ReservedPrefix)
		case utf8.RuneCountInString(value) > maxMetadataValue:
			found.add(at, "must be at most %d characters long", maxMetadataValue)
		case has && other != value:
			found.add(at, "is not the same as in tags: keep one of the two")
		}
		to[key] = value
	}
}

// reserved ignores case since the databases under Nova may do so.
func reserved(name string) bool { return strings.HasPrefix(strings.ToLower(name), ReservedPrefix) }

// maxTagLength is how long Nova lets a tag be, in characters.
const maxTagLength = 60

func validTag(tag string) bool {
	return utf8.RuneCountInString(tag) <= maxTagLength && !strings.ContainsAny(tag, "/,")
}

// given are the elements of a list that are not empty; nil for none.
func given[T ~string](list []T) []T {
	var all []T
	for _, one := range list {
		if one != "" {
			all = append(all, one)
		}
	}
	return all
}

// checkUnused reads the fields of machine-controller that change nothing here.
func (f *fields) checkUnused(found *findings) {
	f.TrustDevicePath.isTrue("trustDevicePath", found)
	f.NodeVolumeAttachLimit.read("nodeVolumeAttachLimit", 0, found)
	for field, text := range map[string]string{
		"instanceReadyCheckPeriod": f.InstanceReadyCheckPeriod, "instanceReadyCheckTimeout": f.InstanceReadyCheckTimeout,
	} {
		if d, err := time.ParseDuration(text); text != "" && (err != nil || d <= 0) {
			found.add(field, "must be a duration above 0, such as 5s or 2m")
		}
	}
}

// microversion is how Nova writes the versions of its API 2.
var microversion = regexp.MustCompile(`^2\.([1-9][0-9]{0,3})$`)

// minorOf returns the second number of a microversion.
func minorOf(text string) (minor int, valid bool) {
	match := microversion.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	minor, err := strconv.Atoi(match[1])
	return minor, err == nil
}
