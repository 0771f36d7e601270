package health

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

func TestStanding(t *testing.T) {
	for _, tc := range []struct {
		name, why string
		signs     Signs
		want      Standing
	}{
		{"new", "it has yet to come up", Signs{}, Uncounted},
		{"works", "", Signs{CameUp: true, Ready: true}, Healthy},
		{"lost its Node", "it worked before", Signs{CameUp: true}, Unhealthy},
		{"failed before it came up", "its template is wrong, and whose that is is no sign of the others", Signs{Failed: true}, Uncounted},
		{"failed before it came up, its Node Ready by now", "it is given up all the same", Signs{Failed: true, Ready: true}, Uncounted},
		{"failed later", "its VM is gone", Signs{Failed: true, CameUp: true}, Unhealthy},
		{"refused", "a wrong spec is no sign of a meltdown", Signs{Failed: true, Refused: true}, Uncounted},
		{"preserved", "whoever keeps it knows of it", Signs{Failed: true, Preserved: true}, Uncounted},
		{"preserved and works", "it need not be counted out", Signs{CameUp: true, Ready: true, Preserved: true}, Healthy},
		{"preserved and lost its Node", "it has not failed", Signs{CameUp: true, Preserved: true}, Unhealthy},
		{"on its way out", "it need not work", Signs{Deleting: true, Failed: true, CameUp: true}, Uncounted},
		{"paused", "nobody looks after it", Signs{Paused: true, CameUp: true}, Uncounted},
		{"another system's", "that one looks after it", Signs{Foreign: true, CameUp: true}, Uncounted},
		{"another system's, and works", "it is no part of what is repaired here", Signs{Foreign: true, CameUp: true, Ready: true}, Uncounted},
		{"lost its Node, driver away", "nobody can tell why", Signs{CameUp: true, DriverAway: true}, Uncounted},
		{"works, driver away", "its Node says so", Signs{CameUp: true, Ready: true, DriverAway: true}, Healthy},
		{"failed, driver away", "it failed before", Signs{Failed: true, CameUp: true, DriverAway: true}, Unhealthy},
	} {
		if got := tc.signs.Standing(); got != tc.want {
			t.Errorf("%s: got %d, want %d: %s", tc.name, got, tc.want, tc.why)
		}
	}
}

func TestMeltdown(t *testing.T) {
	third := intstr.FromString("33%")
	for _, tc := range []struct {
		why   string
		fleet Fleet
		most  intstr.IntOrString
		want  bool
	}{
		{"an empty fleet is well", Fleet{}, third, false},
		{"one of one may be replaced", Fleet{1, 1}, third, false},
		{"two of three may not", Fleet{3, 2}, third, true},
		{"33 % of 20 are 6", Fleet{20, 6}, third, false},
		{"and 7 are more", Fleet{20, 7}, third, true},
		{"a number is the same for any fleet", Fleet{1000, 3}, intstr.FromInt32(3), false},
		{"and one more is too many", Fleet{1000, 4}, intstr.FromInt32(3), true},
		{"with 100 % nothing is too many", Fleet{10, 10}, intstr.FromString("100%"), false},
		{"a limit that nobody can read allows one", Fleet{10, 1}, intstr.FromString("some"), false},
		{"and no more", Fleet{10, 2}, intstr.FromString("some"), true},
	} {
		if got := tc.fleet.Meltdown(tc.most); got != tc.want {
			t.Errorf("%s: got %t", tc.why, got)
		}
	}
}

// More unhealthy Machines never end a meltdown, more healthy ones never begin one.
func TestMeltdownIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Fleet{Machines: rapid.IntRange(1, 1000).Draw(t, "machines")}
		f.Unhealthy = rapid.IntRange(0, f.Machines).Draw(t, "unhealthy")
		most := rapid.SampledFrom([]intstr.IntOrString{
			intstr.FromString("33%"), intstr.FromString("1%"), intstr.FromString("100%"), intstr.FromInt32(1), intstr.FromInt32(50),
		}).Draw(t, "most")
		worse, better := Fleet{f.Machines, f.Unhealthy + 1}, Fleet{f.Machines + 1, f.Unhealthy}
		if f.Meltdown(most) && !worse.Meltdown(most) || !f.Meltdown(most) && better.Meltdown(most) {
			t.Fatalf("%+v: %t, worse %t, better %t", f, f.Meltdown(most), worse.Meltdown(most), better.Meltdown(most))
		}
	})
}

// count is how a fleet of Machines of these signs stands.
func count(of []Signs) Fleet {
	var f Fleet
	for _, s := range of {
		switch s.Standing() {
		case Unhealthy:
			f.Machines, f.Unhealthy = f.Machines+1, f.Unhealthy+1
		case Healthy:
			f.Machines++
		case Uncounted:
		}
	}
	return f
}

func drawSigns(t *rapid.T) Signs {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	return Signs{
		Deleting: yes("deleting"), Paused: yes("paused"), Preserved: yes("preserved"), Failed: yes("failed"),
		Refused: yes("refused"), CameUp: yes("came up"), Ready: yes("ready"), DriverAway: yes("driver away"),
		Foreign: yes("foreign"),
	}
}

// Machines that failed before they came up neither make a meltdown nor hide one, however many there
// are.
func TestSAFE4_WhatNeverCameUpChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet := rapid.SliceOfN(rapid.Custom(drawSigns), 0, 40).Draw(t, "fleet")
		before := count(fleet)
		for range rapid.IntRange(0, 200).Draw(t, "broken") {
			one := drawSigns(t)
			one.Failed, one.CameUp = true, false
			fleet = append(fleet, one)
		}
		if after := count(fleet); after != before {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

// Where more than the limit of the machines that worked have failed or lost their Nodes, nothing is
// replaced: whatever else there is. The limit is a share, so that it has to hold of those that
// count and of nothing else.
func TestSAFE4_AMeltdownCannotBeHidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		up := rapid.IntRange(2, 60).Draw(t, "came up")
		dead := rapid.IntRange(max(2, up*33/100+1), up).Draw(t, "dead")
		var fleet []Signs
		for i := range up {
			fleet = append(fleet, Signs{CameUp: true, Ready: i >= dead, Failed: i < dead && i%2 == 0})
		}
		for range rapid.IntRange(0, 200).Draw(t, "never came up") {
			one := drawSigns(t)
			one.CameUp, one.Ready = false, false
			fleet = append(fleet, one)
		}
		if f := count(fleet); !f.Meltdown(intstr.FromString("33%")) {
			t.Fatalf("%d of %d are dead: %+v", dead, up, f)
		}
	})
}
