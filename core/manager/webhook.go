package manager

import (
	"fmt"
	"net"
	"strconv"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/millwright-dev/millwright/core/admission"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// newWebhookServer makes the server of the webhook; the manager starts it.
func newWebhookServer(o Options) (webhook.Server, error) {
	host, text, err := net.SplitHostPort(o.WebhookAddress)
	if err != nil {
		return nil, fmt.Errorf("--webhook-bind-address=%s: write HOST:PORT: %w", o.WebhookAddress, err)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 {
		return nil, fmt.Errorf("--webhook-bind-address=%s: write HOST:PORT, such as :9443", o.WebhookAddress)
	}
	return webhook.NewServer(webhook.Options{Host: host, Port: port, CertDir: o.WebhookCertDir}), nil
}

// addWebhook adds the webhook, if the operator wants it. Replicas that do not lead serve it, too:
// they get connections of their own to the drivers, on which they ask about specs and nothing else.
func addWebhook(mgr ctrl.Manager, o Options, settings driver.Config, specs *specresolver.Resolver) error {
	if o.WebhookAddress == "" {
		return nil
	}
	settings.Everywhere, settings.MutationBudget, settings.Registry = true, nil, nil
	settings.Log = mgr.GetLogger().WithName("webhook")
	drivers, err := driver.New(settings, o.Drivers)
	if err != nil {
		return err
	}
	if err := mgr.Add(drivers); err != nil {
		return err
	}
	admission.Register(mgr.GetWebhookServer(), admission.Options{Objects: mgr.GetClient(), Drivers: drivers, Specs: specs})
	return mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker())
}
