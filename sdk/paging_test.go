package sdk_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

func listed(uid string, state int) *driverv1alpha1.Machine {
	return &driverv1alpha1.Machine{Ref: &driverv1alpha1.MachineRef{Uid: uid}, LastKnownState: make([]byte, state)}
}

// Over all pages, a machine that is there throughout is listed exactly once, whatever comes and
// goes between two pages.
func TestPagesHoldWhatIsThereThroughoutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uids := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z0-9:,%é-]{1,4}`), rapid.ID[string])
		stay := uids.Draw(t, "stay")
		size := rapid.Int32Range(1, 5).Draw(t, "size")
		seen := map[string]int{}
		token := ""
		for range len(stay) + 100 {
			all := []*driverv1alpha1.Machine{}
			for _, uid := range stay {
				all = append(all, listed(uid, 0))
			}
			for _, uid := range uids.Draw(t, "passing") {
				if !slices.Contains(stay, uid) {
					all = append(all, listed(uid, 0))
				}
			}
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			page, err := sdk.Page(&driverv1alpha1.ListMachinesRequest{PageSize: size, PageToken: token}, all)
			if err != nil || len(page.GetMachines()) > int(size) {
				t.Fatalf("a page of %d machines, %v; at most %d were asked for", len(page.GetMachines()), err, size)
			}
			for _, m := range page.GetMachines() {
				seen[m.GetRef().GetUid()]++
			}
			if token = page.GetNextPageToken(); token == "" {
				break
			}
		}
		for _, uid := range stay {
			if seen[uid] != 1 {
				t.Errorf("%q is listed %d times", uid, seen[uid])
			}
		}
	})
}

func TestPagesFitIntoAMessage(t *testing.T) {
	var all []*driverv1alpha1.Machine
	for i := range 300 {
		all = append(all, listed(fmt.Sprintf("%03d", i), contract.MaxLastKnownStateBytes))
	}
	n, token := 0, ""
	for first := true; first || token != ""; first = false {
		page, err := sdk.Page(&driverv1alpha1.ListMachinesRequest{PageToken: token}, all)
		if err != nil || len(page.GetMachines()) == 0 {
			t.Fatalf("a page of %d machines, %v", len(page.GetMachines()), err)
		}
		if size := proto.Size(page); size >= contract.MaxMessageBytes {
			t.Fatalf("a page of %d bytes", size)
		}
		n += len(page.GetMachines())
		token = page.GetNextPageToken()
	}
	if n != len(all) {
		t.Errorf("%d machines on all pages, want %d", n, len(all))
	}
}

func TestPageTokens(t *testing.T) {
	all := []*driverv1alpha1.Machine{listed("b", 0), listed("a", 0), listed("c", 0)}
	for token, want := range map[string]string{
		"": "a", "after:a": "b", "after:aa": "b",
		"a": "PAGE_TOKEN_EXPIRED", "after:": "PAGE_TOKEN_EXPIRED", "before:b": "PAGE_TOKEN_EXPIRED",
	} {
		page, err := sdk.Page(&driverv1alpha1.ListMachinesRequest{PageSize: 1, PageToken: token}, all)
		got := reasonOf(err)
		if err == nil {
			got = page.GetMachines()[0].GetRef().GetUid()
		}
		if got != want {
			t.Errorf("%q leads to %s, %v; want %s", token, got, err, want)
		}
	}
	if page, err := sdk.Page(&driverv1alpha1.ListMachinesRequest{PageSize: 3}, all); err != nil || page.GetNextPageToken() != "" {
		t.Errorf("a page that holds all goes on at %q, %v", page.GetNextPageToken(), err)
	}
	if all[0].GetRef().GetUid() != "b" {
		t.Error("the driver's list was changed")
	}
}
