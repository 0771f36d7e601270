package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/driverstatus"
)

func driversCommand(where *cluster) *cobra.Command {
	format := newFormat()
	command := &cobra.Command{
		Use:   "drivers",
		Short: "List the manager's drivers: versions, features, and whether they take calls",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, namespace, err := where.connectToManager(corev1.AddToScheme, coordinationv1.AddToScheme)
			if err != nil {
				return err
			}
			drivers, err := readDrivers(command.Context(), c, namespace, command.ErrOrStderr())
			if err != nil {
				return err
			}
			return format.print(command.OutOrStdout(), drivers, func(out io.Writer) error { return printDrivers(out, drivers, time.Now()) })
		},
	}
	format.add(command.Flags())
	return command
}

// driver is what is told of one: its name, too, which is a key in the ConfigMap.
type driver struct {
	Name string `json:"name"`
	driverstatus.Driver
}

// readDrivers reads what the manager in a namespace has published of its drivers, and warns where
// nobody keeps that up to date.
func readDrivers(ctx context.Context, c client.Client, namespace string, warnings io.Writer) ([]driver, error) {
	published := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: driverstatus.ConfigMapName}, published)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no manager has told of its drivers in namespace %s: give the manager's --namespace, or wait until one leads", namespace)
	}
	if err != nil {
		return nil, err
	}
	decoded, err := driverstatus.Decode(published.Data)
	if err != nil {
		return nil, err
	}
	if err := leads(ctx, c, namespace, time.Now()); err != nil {
		_, _ = fmt.Fprintf(warnings, "warning: %v: this is what the last leader told\n", err)
	}
	drivers := make([]driver, 0, len(decoded))
	for _, d := range decoded {
		drivers = append(drivers, driver{Name: d.Name, Driver: d})
	}
	return drivers, nil
}

func printDrivers(out io.Writer, drivers []driver, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tREADY\tSINCE\tVERSION\tADDRESS\tFEATURES\tREASON")
	for _, d := range drivers {
		_, _ = fmt.Fprintln(table, strings.Join([]string{
			d.Name, map[bool]string{true: "True", false: "False"}[d.Ready], duration.HumanDuration(now.Sub(d.Since.Time)),
			cmp.Or(d.Version, "<unknown>"), d.Address, cmp.Or(strings.Join(d.Features, ","), "<none>"), d.Reason,
		}, "\t"))
	}
	return table.Flush()
}

// leads says, as an error, why no manager can be said to lead.
func leads(ctx context.Context, c client.Client, namespace string, now time.Time) error {
	lease := &coordinationv1.Lease{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: driverstatus.LeaseName}, lease); err != nil {
		return fmt.Errorf("the leader's Lease cannot be read: %w", err)
	}
	s := lease.Spec
	lasts := time.Duration(ptr.Deref(s.LeaseDurationSeconds, 0)) * time.Second
	if ptr.Deref(s.HolderIdentity, "") == "" || s.RenewTime == nil || now.Sub(s.RenewTime.Time) > lasts {
		return errors.New("no manager leads")
	}
	return nil
}
