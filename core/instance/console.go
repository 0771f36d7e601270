package instance

// Console is what a driver has answered about a VM's serial console, or that it is being asked.
type Console struct {
	// UnderWay: there is no answer yet. Its arrival wakes the machine.
	UnderWay bool
	// Lines are the last that the VM wrote, oldest first, fit for a condition and free of secrets;
	// none where it wrote nothing that can be shown.
	Lines []string
	// Failure is why the console could not be read; nil where it could.
	Failure *Failure
}
