package volume

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// quotas are those of Cinder, by what the cloud calls their kinds.
var quotas = map[string]string{"volumes": state.KindVolume, "gigabytes": "gigabytes"}

// use is how much a project has.
func use(cinder *Cinder, project string) map[string]int64 {
	used := map[string]int64{state.KindVolume: cinder.Volumes.Used[project]}
	for _, v := range cinder.Volumes.Ordered {
		if v.Project == project {
			used["gigabytes"] += int64(v.Size)
		}
	}
	return used
}

func checkQuota(cinder *Cinder, project string, size int) error {
	used := use(cinder, project)
	if cinder.store.Quotas.Exceeds(project, state.KindVolume, used[state.KindVolume], 1) {
		return overLimit("VolumeLimitExceeded: Maximum number of volumes allowed (" + strconv.FormatInt(cinder.store.Quotas.Limit(project, state.KindVolume), 10) +
			") exceeded for quota 'volumes'.")
	}
	if cinder.store.Quotas.Exceeds(project, "gigabytes", used["gigabytes"], int64(size)) {
		return overLimit("VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested " + strconv.Itoa(size) +
			"G, quota is " + strconv.FormatInt(cinder.store.Quotas.Limit(project, "gigabytes"), 10) + "G and " + strconv.FormatInt(used["gigabytes"], 10) + "G has been consumed.")
	}
	return nil
}

// overLimit is how Cinder refuses: with a time to come again, which is now.
func overLimit(message string) error {
	return &api.Refusal{Status: http.StatusRequestEntityTooLarge, Message: message, ComeAgain: true}
}

// showVolumeQuota implements GET /v3/{project}/os-quota-sets/{target}.
func showVolumeQuota(cinder *Cinder, call *api.Call) (api.Reply, error) {
	set := api.Object{"id": call.Path("target")}
	for quota, kind := range quotas {
		set[quota] = cinder.store.Quotas.Limit(call.Path("target"), kind)
	}
	return api.OK(api.Object{"quota_set": set})
}

// updateVolumeQuota implements PUT /v3/{project}/os-quota-sets/{target}.
func updateVolumeQuota(cinder *Cinder, call *api.Call) (api.Reply, error) {
	if !call.Admin() {
		return api.Reply{}, api.Refuse(http.StatusForbidden, "Policy doesn't allow volume_extension:quotas:update to be performed.")
	}
	var body struct {
		Set map[string]any `json:"quota_set"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, malformed()
	}
	cinder.store.Quotas.Set(call.Path("target"), state.LimitsOf(body.Set, quotas))
	call.Done = true
	return showVolumeQuota(cinder, call)
}
