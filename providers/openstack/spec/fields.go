package spec

import (
	"strings"

	"github.com/millwright-dev/millwright/sdk"
)

// accountFields are the fields of cloudProviderSpec that name the account.
type accountFields struct {
	IdentityEndpoint            string `json:"identityEndpoint,omitempty"`
	Region                      string `json:"region,omitempty"`
	Interface                   string `json:"interface,omitempty"`
	CACert                      string `json:"caCert,omitempty"`
	ClientCert                  string `json:"clientCert,omitempty"`
	ClientKey                   string `json:"clientKey,omitempty"`
	Username                    string `json:"username,omitempty"`
	UserID                      string `json:"userID,omitempty"`
	Password                    string `json:"password,omitempty"`
	TokenID                     string `json:"tokenId,omitempty"`
	ApplicationCredentialID     string `json:"applicationCredentialID,omitempty"`
	ApplicationCredentialName   string `json:"applicationCredentialName,omitempty"`
	ApplicationCredentialSecret string `json:"applicationCredentialSecret,omitempty"`
	TrustID                     string `json:"trustID,omitempty"`
	DomainName                  string `json:"domainName,omitempty"`
	DomainID                    string `json:"domainID,omitempty"`
	UserDomainName              string `json:"userDomainName,omitempty"`
	UserDomainID                string `json:"userDomainID,omitempty"`
	ProjectDomainName           string `json:"projectDomainName,omitempty"`
	ProjectDomainID             string `json:"projectDomainID,omitempty"`
	ProjectName                 string `json:"projectName,omitempty"`
	ProjectID                   string `json:"projectID,omitempty"`
	TenantName                  string `json:"tenantName,omitempty"`
	TenantID                    string `json:"tenantID,omitempty"`
}

// fields is cloudProviderSpec as it is written; schema.json describes it for people.
type fields struct {
	accountFields
	ComputeAPIVersion         string            `json:"computeAPIVersion,omitempty"`
	AvailabilityZone          string            `json:"availabilityZone,omitempty"`
	Flavor                    string            `json:"flavor,omitempty"`
	Image                     Reference         `json:"image,omitempty"`
	SSHKeyName                string            `json:"sshKeyName,omitempty"`
	RootDiskSizeGB            integer           `json:"rootDiskSizeGB,omitzero"`
	RootDiskVolumeType        string            `json:"rootDiskVolumeType,omitempty"`
	RootDiskAvailabilityZone  string            `json:"rootDiskAvailabilityZone,omitempty"`
	AdditionalBlockDevices    []deviceFields    `json:"additionalBlockDevices,omitempty"`
	Network                   Reference         `json:"network,omitempty"`
	Networks                  []Reference       `json:"networks,omitempty"`
	Subnet                    Reference         `json:"subnet,omitempty"`
	Ports                     []portFields      `json:"ports,omitempty"`
	SecurityGroups            []Reference       `json:"securityGroups,omitempty"`
	DisablePortSecurity       truth             `json:"disablePortSecurity,omitzero"`
	PodNetworkCIDRs           []string          `json:"podNetworkCIDRs,omitempty"`
	FloatingIPPool            string            `json:"floatingIpPool,omitempty"`
	FloatingIPReuse           truth             `json:"floatingIpReuse,omitzero"`
	FloatingIPs               []string          `json:"floatingIPs,omitempty"`
	ServerGroup               string            `json:"serverGroup,omitempty"`
	ServerGroupID             string            `json:"serverGroupID,omitempty"`
	SchedulerHints            map[string]any    `json:"schedulerHints,omitempty"`
	ConfigDrive               truth             `json:"configDrive,omitzero"`
	Tags                      tags              `json:"tags,omitzero"`
	ServerMetadata            map[string]string `json:"serverMetadata,omitempty"`
	TrustDevicePath           truth             `json:"trustDevicePath,omitzero"`
	NodeVolumeAttachLimit     integer           `json:"nodeVolumeAttachLimit,omitzero"`
	InstanceReadyCheckPeriod  string            `json:"instanceReadyCheckPeriod,omitempty"`
	InstanceReadyCheckTimeout string            `json:"instanceReadyCheckTimeout,omitempty"`
}

type portFields struct {
	ID                  string          `json:"id,omitempty"`
	Network             Reference       `json:"network,omitempty"`
	Subnet              Reference       `json:"subnet,omitempty"`
	FixedIPs            []fixedIPFields `json:"fixedIPs,omitempty"`
	SecurityGroups      []Reference     `json:"securityGroups,omitempty"`
	DisablePortSecurity truth           `json:"disablePortSecurity,omitzero"`
	AllowedAddressPairs []pairFields    `json:"allowedAddressPairs,omitempty"`
	VNICType            string          `json:"vnicType,omitempty"`
	Profile             map[string]any  `json:"profile,omitempty"`
	Trunk               truth           `json:"trunk,omitzero"`
	Tags                []string        `json:"tags,omitempty"`
	HostID              string          `json:"hostID,omitempty"`
	PropagateUplink     truth           `json:"propagateUplinkStatus,omitzero"`
	ValueSpecs          []valueFields   `json:"valueSpecs,omitempty"`
}

type valueFields struct {
	Name  string `json:"name,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

type fixedIPFields struct {
	Subnet    Reference `json:"subnet,omitempty"`
	IPAddress string    `json:"ipAddress,omitempty"`
}

type pairFields struct {
	IPAddress  string `json:"ipAddress,omitempty"`
	MACAddress string `json:"macAddress,omitempty"`
}

type deviceFields struct {
	Name    string        `json:"name,omitempty"`
	SizeGiB integer       `json:"sizeGiB,omitzero"`
	Storage storageFields `json:"storage,omitzero"`
}

type storageFields struct {
	Type   string       `json:"type,omitempty"`
	Volume volumeFields `json:"volume,omitzero"`
}

type volumeFields struct {
	Type             string `json:"type,omitempty"`
	AvailabilityZone string `json:"availabilityZone,omitempty"`
}

// parse reads the spec and puts the secrets that bear its fields' names in their places. The error
// is SPEC_INVALID.
func parse(raw []byte, secrets map[string][]byte) (*fields, error) {
	f := &fields{}
	if err := sdk.ReadSpec(raw, f); err != nil {
		return nil, err
	}
	for name, field := range f.secret() {
		if value := secretText(secrets[name]); value != "" {
			*field = value
		}
	}
	return f, nil
}

// secretText is a secret without the end of its line, which `kubectl create secret --from-file` and
// echo leave in it and nobody means.
func secretText(value []byte) string { return strings.TrimRight(string(value), "\r\n") }

// secret are the fields that may come from a Secret, by their names: those that are writeOnly in
// schema.json.
func (f *fields) secret() map[string]*string {
	return map[string]*string{
		"identityEndpoint":            &f.IdentityEndpoint,
		"region":                      &f.Region,
		"caCert":                      &f.CACert,
		"clientCert":                  &f.ClientCert,
		"clientKey":                   &f.ClientKey,
		"username":                    &f.Username,
		"userID":                      &f.UserID,
		"password":                    &f.Password,
		"tokenId":                     &f.TokenID,
		"applicationCredentialID":     &f.ApplicationCredentialID,
		"applicationCredentialName":   &f.ApplicationCredentialName,
		"applicationCredentialSecret": &f.ApplicationCredentialSecret,
		"trustID":                     &f.TrustID,
		"domainName":                  &f.DomainName,
		"domainID":                    &f.DomainID,
		"userDomainName":              &f.UserDomainName,
		"userDomainID":                &f.UserDomainID,
		"projectDomainName":           &f.ProjectDomainName,
		"projectDomainID":             &f.ProjectDomainID,
		"projectName":                 &f.ProjectName,
		"projectID":                   &f.ProjectID,
		"tenantName":                  &f.TenantName,
		"tenantID":                    &f.TenantID,
		"instanceReadyCheckPeriod":    &f.InstanceReadyCheckPeriod,
		"instanceReadyCheckTimeout":   &f.InstanceReadyCheckTimeout,
	}
}

// projectField is the field that names the project, the first of those that do; empty where none
// does.
func (f *accountFields) projectField() string {
	switch {
	case f.ProjectID != "":
		return "projectID"
	case f.TenantID != "":
		return "tenantID"
	case f.ProjectName != "":
		return "projectName"
	case f.TenantName != "":
		return "tenantName"
	}
	return ""
}

// account is what these fields say of the account, as it is written.
func (f *accountFields) account(found *findings) Account {
	return Account{
		IdentityEndpoint: f.IdentityEndpoint, Region: f.Region, Interface: f.Interface, CACert: f.CACert,
		ClientCert: f.ClientCert, ClientKey: f.ClientKey,
		DomainName: f.DomainName, DomainID: f.DomainID,
		UserDomainName: f.UserDomainName, UserDomainID: f.UserDomainID,
		ProjectDomainName: f.ProjectDomainName, ProjectDomainID: f.ProjectDomainID,
		Username: f.Username, UserID: f.UserID, Password: f.Password,
		ProjectName: found.alias("projectName", f.ProjectName, "tenantName", f.TenantName),
		ProjectID:   found.alias("projectID", f.ProjectID, "tenantID", f.TenantID),
		Token:       f.TokenID, TrustID: f.TrustID,
		ApplicationCredentialID: f.ApplicationCredentialID, ApplicationCredentialName: f.ApplicationCredentialName,
		ApplicationCredentialSecret: f.ApplicationCredentialSecret,
	}
}
