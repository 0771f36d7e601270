// Package volume simulates Cinder, OpenStack's block storage service: volumes, their types and
// quotas. Package compute attaches the volumes to servers, and makes those that servers boot from.
package volume
