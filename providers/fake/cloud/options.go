package cloud

import (
	"log/slog"
	"maps"
	"time"
)

// Options say how the cloud behaves. The zero value is a cloud that does everything at once and
// forgets it all.
type Options struct {
	// Journal is the file that keeps the cloud's state; empty: memory only. No two clouds may share
	// one.
	Journal string
	// BootLatency is how long a VM stays BUILDING; DeleteLatency how long it stays DELETING.
	BootLatency, DeleteLatency time.Duration
	// MinCallLatency and MaxCallLatency bound how long a call of the cloud's own API takes. Half of
	// it passes before the call takes effect, half of it after.
	MinCallLatency, MaxCallLatency time.Duration
	// Quota limits the resources of each account by kind, "vm" and "nic". A kind that is not in it
	// is not limited. What a hook has set goes before it, also after a restart.
	Quota map[string]int64
	// Page is the most NICs or VMs that a list tells of at once, whatever is asked for; 0 means
	// 1000.
	Page int
	// Accounts are the names of accounts by the key that opens them. The empty key opens the
	// account "default", unless it is given here.
	Accounts map[string]string
	// Forgetful has the cloud forget the client token of a VM together with the VM: a request that
	// comes late makes another one then.
	Forgetful bool
	// Log gets what the cloud's owner should know; nil discards it.
	Log *slog.Logger
}

// defaultPage is the most that a list returns at once, unless the options say otherwise.
const defaultPage = 1000

// defaultAccount is what the empty key opens.
const defaultAccount = "default"

func (o Options) withDefaults() Options {
	accounts := map[string]string{"": defaultAccount}
	maps.Copy(accounts, o.Accounts)
	o.Accounts = accounts
	if o.Page <= 0 {
		o.Page = defaultPage
	}
	o.MaxCallLatency = max(o.MaxCallLatency, o.MinCallLatency)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
