package sdk

import (
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// The messages of the contract, so that a driver imports this package alone. Their comments stand
// in the contract's .proto files.
//
//nolint:revive // they are told together
type (
	Machine                 = driverv1alpha1.Machine
	MachineRef              = driverv1alpha1.MachineRef
	MachineAddress          = driverv1alpha1.MachineAddress
	MachineOperation        = driverv1alpha1.MachineOperation
	RequestMeta             = driverv1alpha1.RequestMeta
	ProviderContext         = driverv1alpha1.ProviderContext
	CreateMachineRequest    = driverv1alpha1.CreateMachineRequest
	GetMachineStatusRequest = driverv1alpha1.GetMachineStatusRequest
	DeleteMachineRequest    = driverv1alpha1.DeleteMachineRequest
	ListMachinesRequest     = driverv1alpha1.ListMachinesRequest
	ListMachinesResponse    = driverv1alpha1.ListMachinesResponse
	AdoptMachineRequest     = driverv1alpha1.AdoptMachineRequest
	GetConsoleOutputRequest = driverv1alpha1.GetConsoleOutputRequest

	Limits    = driverv1alpha1.Limits
	TagLimits = driverv1alpha1.TagLimits
	Deadlines = driverv1alpha1.Deadlines
	Feature   = driverv1alpha1.Feature

	GetProviderSpecSchemaRequest  = driverv1alpha1.GetProviderSpecSchemaRequest
	GetProviderSpecSchemaResponse = driverv1alpha1.GetProviderSpecSchemaResponse
	DefaultProviderSpecRequest    = driverv1alpha1.DefaultProviderSpecRequest
	DefaultProviderSpecResponse   = driverv1alpha1.DefaultProviderSpecResponse
	ValidateProviderSpecRequest   = driverv1alpha1.ValidateProviderSpecRequest
	ValidateProviderSpecResponse  = driverv1alpha1.ValidateProviderSpecResponse
	FieldViolation                = driverv1alpha1.FieldViolation
	GetInstanceTemplateRequest    = driverv1alpha1.GetInstanceTemplateRequest
	GetInstanceTemplateResponse   = driverv1alpha1.GetInstanceTemplateResponse
	InstanceTemplate              = driverv1alpha1.InstanceTemplate
	Taint                         = driverv1alpha1.Taint

	MachineState = driverv1alpha1.MachineState
	AddressType  = driverv1alpha1.AddressType
	TaintEffect  = driverv1alpha1.TaintEffect
	ErrorReason  = driverv1alpha1.ErrorReason
)

// The states of a machine.
const (
	StateCreating = driverv1alpha1.MachineState_MACHINE_STATE_CREATING
	StateRunning  = driverv1alpha1.MachineState_MACHINE_STATE_RUNNING
	StateUpdating = driverv1alpha1.MachineState_MACHINE_STATE_UPDATING
	StateStopping = driverv1alpha1.MachineState_MACHINE_STATE_STOPPING
	StateStopped  = driverv1alpha1.MachineState_MACHINE_STATE_STOPPED
	StateDeleting = driverv1alpha1.MachineState_MACHINE_STATE_DELETING
	StateFailed   = driverv1alpha1.MachineState_MACHINE_STATE_FAILED
)

// What an address is good for.
const (
	AddressInternalIP  = driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_IP
	AddressExternalIP  = driverv1alpha1.AddressType_ADDRESS_TYPE_EXTERNAL_IP
	AddressHostname    = driverv1alpha1.AddressType_ADDRESS_TYPE_HOSTNAME
	AddressInternalDNS = driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_DNS
	AddressExternalDNS = driverv1alpha1.AddressType_ADDRESS_TYPE_EXTERNAL_DNS
)

// The effects of a taint.
const (
	TaintNoSchedule       = driverv1alpha1.TaintEffect_TAINT_EFFECT_NO_SCHEDULE
	TaintPreferNoSchedule = driverv1alpha1.TaintEffect_TAINT_EFFECT_PREFER_NO_SCHEDULE
	TaintNoExecute        = driverv1alpha1.TaintEffect_TAINT_EFFECT_NO_EXECUTE
)

// The reasons that core interprets, for NewError.
const (
	ReasonSpecInvalid         = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	ReasonRequestTooLarge     = driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE
	ReasonPageTokenExpired    = driverv1alpha1.ErrorReason_ERROR_REASON_PAGE_TOKEN_EXPIRED
	ReasonDependencyNotFound  = driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND
	ReasonDeletionProtected   = driverv1alpha1.ErrorReason_ERROR_REASON_DELETION_PROTECTED
	ReasonVolumesAttached     = driverv1alpha1.ErrorReason_ERROR_REASON_VOLUMES_ATTACHED
	ReasonAccountChanged      = driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED
	ReasonStaleEpoch          = driverv1alpha1.ErrorReason_ERROR_REASON_STALE_EPOCH
	ReasonSpecConflict        = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT
	ReasonNameTaken           = driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN
	ReasonCredentialsInvalid  = driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID
	ReasonPermissionMissing   = driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING
	ReasonQuotaExceeded       = driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
	ReasonCapacityUnavailable = driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE
	ReasonRateLimited         = driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED
	ReasonOperationPending    = driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING
	ReasonMachineNotFound     = driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND
	ReasonProviderInternal    = driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL
	ReasonOutcomeUnknown      = driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN
)
