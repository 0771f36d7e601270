package sdk_test

import (
	"bytes"
	"testing"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/rig"
)

func TestConsoleOutputIsItsNewestPart(t *testing.T) {
	newest := bytes.Repeat([]byte("\x00\xff\x1b["), contract.MaxConsoleBytes/4)
	for name, tc := range map[string]struct{ console, want []byte }{
		"nothing yet":          {nil, nil},
		"no UTF-8":             {[]byte("login: \x80\r\n"), []byte("login: \x80\r\n")},
		"as much as goes":      {newest, newest},
		"more than goes":       {append([]byte("the beginning"), newest...), newest},
		"one byte beyond that": {append([]byte("x"), newest...), newest},
	} {
		t.Run(name, func(t *testing.T) {
			machines := driverv1alpha1.NewMachineServiceClient(rig.Start(t, &everything{console: tc.console}))
			got, err := machines.GetConsoleOutput(t.Context(), goodConsole())
			if err != nil || !bytes.Equal(got.GetOutput(), tc.want) {
				t.Errorf("%d bytes (%v), want the last %d", len(got.GetOutput()), err, len(tc.want))
			}
		})
	}
}
