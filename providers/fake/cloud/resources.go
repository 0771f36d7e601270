package cloud

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// The kinds of resources, as quotas and hooks name them.
const (
	kindVM  = "vm"
	kindNIC = "nic"
)

type vmState = fakecloudv1alpha1.VMState

// The states of a VM.
const (
	building = fakecloudv1alpha1.VMState_VM_STATE_BUILDING
	running  = fakecloudv1alpha1.VMState_VM_STATE_RUNNING
	stopped  = fakecloudv1alpha1.VMState_VM_STATE_STOPPED
	failed   = fakecloudv1alpha1.VMState_VM_STATE_FAILED
	deleting = fakecloudv1alpha1.VMState_VM_STATE_DELETING
	gone     = fakecloudv1alpha1.VMState_VM_STATE_GONE
)

type nic struct {
	record
	Address string `json:"address"`
	// VM is the id of the VM that uses it.
	VM string `json:"vm,omitempty"`
}

type vm struct {
	record
	State   vmState   `json:"state"`
	Fault   string    `json:"fault,omitempty"`
	NIC     string    `json:"nic,omitempty"`
	Address string    `json:"address,omitempty"`
	Flavor  string    `json:"flavor,omitempty"`
	Image   string    `json:"image,omitempty"`
	Zone    string    `json:"zone,omitempty"`
	Deleted time.Time `json:"deleted,omitzero"`
	// Request is what was asked for, to tell a repeated request from another one with the same
	// token.
	Request string `json:"request,omitempty"`
	// Due is when the state changes by itself; zero: never.
	Due time.Time `json:"due,omitzero"`
	// BootFault is what the VM will fail with when it has booted.
	BootFault string `json:"bootFault,omitempty"`
	// Printed is what a test had the VM print on its console.
	Printed  string `json:"printed,omitempty"`
	Revision int64  `json:"revision"`
	// userData is journaled once, beside the VM: it is big and never changes.
	userData []byte
}

func (v *vm) providerID() string { return "fake:///" + v.Zone + "/" + v.ID }

// console is what the VM has printed: how it booted, once it has, and what a test had it print.
func (v *vm) console() string {
	if v.State == building || v.State == failed {
		return v.Printed
	}
	return "Fake Linux 1.0 " + v.Name + " ttyS0\r\n\r\n" + v.Printed
}

func (v *vm) wire() *fakecloudv1alpha1.VM {
	return &fakecloudv1alpha1.VM{
		Id: v.ID, ProviderId: v.providerID(), Name: v.Name, Tags: maps.Clone(v.Tags), State: v.State, Fault: v.Fault,
		NicId: v.NIC, Address: v.Address, Flavor: v.Flavor, Image: v.Image, Region: region, Zone: v.Zone,
		CreateTime: timestamppb.New(v.Created),
	}
}

func (n *nic) wire() *fakecloudv1alpha1.NIC {
	return &fakecloudv1alpha1.NIC{
		Id: n.ID, Name: n.Name, Tags: maps.Clone(n.Tags), Address: n.Address, VmId: n.VM, CreateTime: timestamppb.New(n.Created),
	}
}

// tokenKey names a client token within its account.
func (r *record) tokenKey() string { return r.Account + "\x00" + r.Token }

func (c *Cloud) createNIC(t *turn, r *fakecloudv1alpha1.CreateNICRequest) (*nic, error) {
	wanted := record{Account: t.account, Token: r.GetClientToken()}
	if id, known := c.store.nicTokens[wanted.tokenKey()]; known && wanted.Token != "" {
		return c.store.nics.byID[id], nil
	}
	if err := c.store.checkQuota(kindNIC, c.store.nics.used[t.account]); err != nil {
		return nil, err
	}
	n := &nic{record: c.store.newRecord(kindNIC, t.account)}
	n.Name, n.Token, n.Tags = r.GetName(), wanted.Token, maps.Clone(r.GetTags())
	n.Address = addressOf(n)
	c.store.putNIC(n)
	t.Changed(n.ID)
	return n, c.write(entry{NIC: n})
}

// addressOf returns an address that no other NIC has.
func addressOf(n *nic) string {
	return fmt.Sprintf("10.%d.%d.%d", n.Seq>>16&255, n.Seq>>8&255, n.Seq&255)
}

func (c *Cloud) deleteNIC(t *turn, id string) error {
	n, ok := c.store.nics.find(t.account, id)
	if !ok {
		return noResource(kindNIC, id)
	}
	if n.VM != "" {
		return refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_IN_USE, kindNIC, "The nic %q is in use by the vm %q.", id, n.VM)
	}
	c.store.dropNIC(id)
	t.Changed(id)
	return c.write(entry{NICGone: id})
}

func (c *Cloud) createVM(t *turn, r *fakecloudv1alpha1.CreateVMRequest) (*vm, error) {
	wanted := record{Account: t.account, Token: r.GetClientToken()}
	if seq, known := c.store.vmTokens[wanted.tokenKey()]; known && wanted.Token != "" {
		v := c.store.vms[seq]
		if v.Request != requestOf(r) {
			return nil, refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_TOKEN_MISMATCH, "client_token",
				"The client token was used with other parameters, for the vm %q.", v.ID)
		}
		return v, nil
	}
	if err := c.checkVM(t.account, r); err != nil {
		return nil, err
	}
	v := &vm{record: c.store.newRecord(kindVM, t.account), State: building, Request: requestOf(r), userData: slices.Clone(r.GetUserData())}
	v.Name, v.Token, v.Tags = r.GetName(), wanted.Token, maps.Clone(r.GetTags())
	v.Flavor, v.Image, v.Zone = r.GetFlavor(), r.GetImage(), r.GetZone()
	if v.Zone == "" {
		v.Zone = zones[0]
	}
	n := c.store.nics.byID[r.GetNicId()]
	n.VM, v.NIC, v.Address = v.ID, n.ID, n.Address
	t.plan(v)
	c.schedule(v, c.options.BootLatency)
	c.store.putVM(v)
	t.Changed(v.ID)
	return v, c.write(entry{VM: c.touch(v), UserData: v.userData, NIC: n})
}

// checkVM returns an error when the VM cannot be made.
func (c *Cloud) checkVM(account string, r *fakecloudv1alpha1.CreateVMRequest) error {
	if err := checkCatalog(r.GetFlavor(), r.GetImage(), r.GetZone()); err != nil {
		return err
	}
	if n := len(r.GetUserData()); n > maxUserData {
		return refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_BAD_REQUEST, "user_data",
			"The user data has %d bytes, at most %d are allowed.", n, maxUserData)
	}
	n, ok := c.store.nics.find(account, r.GetNicId())
	if !ok {
		return noResource(kindNIC, r.GetNicId())
	}
	if n.VM != "" {
		return refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_IN_USE, kindNIC, "The nic %q is in use by the vm %q.", n.ID, n.VM)
	}
	return c.store.checkQuota(kindVM, c.store.alive.used[account])
}

func (c *Cloud) deleteVM(t *turn, id string) (*vm, error) {
	v, ok := c.store.alive.find(t.account, id)
	if !ok {
		return nil, noResource(kindVM, id)
	}
	if v.State == deleting {
		return v, nil
	}
	t.Changed(id)
	v.State = deleting
	c.schedule(v, c.options.DeleteLatency)
	return v, c.write(c.settle(v))
}

// setTags gives a resource other tags. The inventories go by tags, so it is taken out and put back.
func (c *Cloud) setTags(t *turn, r *fakecloudv1alpha1.SetTagsRequest) error {
	if v, ok := c.store.alive.find(t.account, r.GetId()); ok {
		c.store.dropVM(v)
		v.Tags = maps.Clone(r.GetTags())
		c.store.putVM(v)
		t.Changed(v.ID)
		return c.write(entry{VM: c.touch(v)})
	}
	n, ok := c.store.nics.find(t.account, r.GetId())
	if !ok {
		return noResource(kindNIC, r.GetId())
	}
	c.store.nics.remove(n.ID)
	n.Tags = maps.Clone(r.GetTags())
	c.store.putNIC(n)
	t.Changed(n.ID)
	return c.write(entry{NIC: n})
}

// settle notes that a VM has changed and, when it is gone, takes it away. It returns what to write.
func (c *Cloud) settle(v *vm) entry {
	if v.State != gone {
		return entry{VM: c.touch(v)}
	}
	v.Deleted, v.userData = testcloud.Now(), nil
	c.store.dropVM(v)
	if c.options.Forgetful {
		delete(c.store.vmTokens, v.tokenKey())
		v.Token = ""
	}
	if n := c.store.nics.byID[v.NIC]; n != nil {
		n.VM = ""
		return entry{VM: c.touch(v), NIC: n}
	}
	return entry{VM: c.touch(v)}
}

// schedule sets when the VM's state changes by itself. Without a delay it changes now.
func (c *Cloud) schedule(v *vm, delay time.Duration) {
	v.Due = testcloud.Now().Add(delay)
	if delay <= 0 {
		v.State = v.next()
		return
	}
	c.arm(v)
}

// next is the state that follows by itself.
func (v *vm) next() vmState {
	v.Due = time.Time{}
	switch {
	case v.State == deleting:
		return gone
	case v.State == building && v.BootFault == bootsForever:
		return building
	case v.State == building && v.BootFault != "":
		v.Fault = v.BootFault
		return failed
	case v.State == building:
		return running
	}
	return v.State
}

// arm lets the state change when it is due. The runtime keeps timers in a heap: a thousand of them
// cost no goroutine.
func (c *Cloud) arm(v *vm) {
	due := v.Due
	time.AfterFunc(time.Until(due), func() {
		c.front.Lock()
		defer c.front.Unlock()
		if c.front.IsClosed() || !v.Due.Equal(due) {
			return
		}
		v.State = v.next()
		c.front.Report(c.write(c.settle(v)))
	})
}

// bootsForever as a BootFault stands for a VM that never leaves BUILDING.
const bootsForever = "\x00"

// requestOf is what has to be the same in a repeated request: neither the user data, which rotates,
// nor the NIC.
func requestOf(r *fakecloudv1alpha1.CreateVMRequest) string {
	return fmt.Sprintf("%q %q %q %q", r.GetName(), r.GetFlavor(), r.GetImage(), r.GetZone())
}
