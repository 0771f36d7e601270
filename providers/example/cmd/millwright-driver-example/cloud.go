package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/millwright-dev/millwright/sdk"
)

// This file is the client of the cloud: put that of yours in its place. Whatever client you take,
// switch off its retries: Millwright retries, and a retry that it does not see can make a second
// VM.

// nic and vm are what the cloud answers.
type nic struct {
	ID   string            `json:"id"`
	Tags map[string]string `json:"tags"`
	VM   string            `json:"vm_id"`
	Made time.Time         `json:"create_time"`
}

type vm struct {
	ID         string            `json:"id"`
	ProviderID string            `json:"provider_id"`
	Tags       map[string]string `json:"tags"`
	State      string            `json:"state"`
	Fault      string            `json:"fault"`
	Address    string            `json:"address"`
	Flavor     string            `json:"flavor"`
	Image      string            `json:"image"`
	Made       time.Time         `json:"create_time"`
}

// answer is any answer of the cloud, and the error that it can be.
type answer struct {
	Account string `json:"account"`
	NIC     nic    `json:"nic"`
	NICs    []nic  `json:"nics"`
	VM      vm     `json:"vm"`
	VMs     []vm   `json:"vms"`
	Next    string `json:"next_page_token"`
	// Code and Message are those of an error.
	Code    string `json:"code"`
	Message string `json:"message"`
}

// client calls the cloud with a token.
type client struct {
	http            *http.Client
	endpoint, token string
}

// errGone says that what was to be deleted does not exist.
var errGone = errors.New("it does not exist")

// call makes one call, and retries nothing.
func (c client) call(ctx context.Context, method, path string, body any) (*answer, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.endpoint+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, unknown(ctx, err)
	}
	defer response.Body.Close()
	var a answer
	raw, err = io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	if response.StatusCode >= http.StatusBadRequest {
		a.Message = cmp.Or(a.Message, response.Status) // a proxy before the cloud writes no JSON
		return nil, explain(method, response, a)
	}
	if err != nil {
		return nil, unknown(ctx, err)
	}
	return &a, nil
}

// numbers differ from call to call: ports, times, the ids of streams.
var numbers = regexp.MustCompile(`[0-9]+`)

// unknown is an answer that did not come, or not whole. It says why by the innermost cause: those
// around it tell of addresses.
func unknown(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		err = cause
	}
	return sdk.NewUnknownOutcome("The cloud did not answer: " + numbers.ReplaceAllString(err.Error(), "…") + ".")
}

// explain puts an error of the cloud into the contract's terms, in the cloud's own words.
func explain(method string, response *http.Response, a answer) error {
	if method == http.MethodDelete && a.Code == "NO_SUCH_RESOURCE" { // and not any 404
		return errGone
	}
	switch response.StatusCode {
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return sdk.NewUnknownOutcome(a.Message) // it may have done what it was asked, or do it yet
	case http.StatusUnauthorized:
		return sdk.NewError(sdk.ReasonCredentialsInvalid, a.Message)
	case http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 does not say when
		return sdk.NewError(sdk.ReasonRateLimited, a.Message, sdk.WithRetryAfter(time.Duration(seconds)*time.Second))
	}
	reason, known := reasons[a.Code]
	if !known {
		reason = sdk.ReasonProviderInternal
	}
	return sdk.NewError(reason, a.Message)
}

// reasons are those of the cloud's error codes.
var reasons = map[string]sdk.ErrorReason{
	"BAD_REQUEST":        sdk.ReasonSpecInvalid,
	"FORBIDDEN":          sdk.ReasonPermissionMissing,
	"NO_SUCH_DEPENDENCY": sdk.ReasonDependencyNotFound,
	"TOKEN_MISMATCH":     sdk.ReasonSpecConflict,
	"QUOTA_EXCEEDED":     sdk.ReasonQuotaExceeded,
	"NO_CAPACITY":        sdk.ReasonCapacityUnavailable,
	// Another call for the same machine was first.
	"IN_USE": sdk.ReasonOperationPending, "NO_SUCH_RESOURCE": sdk.ReasonOperationPending,
}

// list calls what for each page of a list.
func (c client) list(ctx context.Context, kind string, tags map[string]string, what func(*answer)) error {
	query := url.Values{}
	for key, value := range tags {
		query.Add("tag", key+"="+value)
	}
	for {
		page, err := c.call(ctx, http.MethodGet, "/v1/"+kind+"?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		what(page)
		if page.Next == "" {
			return nil
		}
		query.Set("page_token", page.Next)
	}
}
