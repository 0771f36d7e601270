package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// maxBody bounds the requests that the cloud reads.
const maxBody = 1 << 20

// HTTP serves the cloud's own API as JSON over HTTP, as most clouds do: the messages are those of
// cloud.proto, a request's key is its bearer token.
//
//	POST   /v1/nics, /v1/vms          makes one
//	GET    /v1/nics, /v1/vms          lists those with all of the tags in ?tag=KEY=VALUE
//	DELETE /v1/nics/ID, /v1/vms/ID    removes one
//
// A list has pages: ?page_size= is how many it holds, ?page_token= where it goes on.
// An error is {"code": "QUOTA_EXCEEDED", "message": …} with a status of 4xx or 5xx; 429 has
// Retry-After, in seconds.
func (c *Cloud) HTTP() http.Handler {
	a := &api{cloud: c}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/nics", made(a.CreateNIC))
	mux.HandleFunc("POST /v1/vms", made(a.CreateVM))
	mux.HandleFunc("GET /v1/nics", func(w http.ResponseWriter, r *http.Request) {
		tags, size := wanted(r)
		answer, err := a.ListNICs(r.Context(), &fakecloudv1alpha1.ListNICsRequest{
			Key: keyOf(r), Tags: tags, PageSize: size, PageToken: r.URL.Query().Get("page_token"),
		})
		reply(w, answer, err)
	})
	mux.HandleFunc("GET /v1/vms", func(w http.ResponseWriter, r *http.Request) {
		tags, size := wanted(r)
		answer, err := a.ListVMs(r.Context(), &fakecloudv1alpha1.ListVMsRequest{
			Key: keyOf(r), Tags: tags, PageSize: size, PageToken: r.URL.Query().Get("page_token"),
		})
		reply(w, answer, err)
	})
	mux.HandleFunc("DELETE /v1/nics/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer, err := a.DeleteNIC(r.Context(), &fakecloudv1alpha1.DeleteNICRequest{Key: keyOf(r), Id: r.PathValue("id")})
		reply(w, answer, err)
	})
	mux.HandleFunc("DELETE /v1/vms/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer, err := a.DeleteVM(r.Context(), &fakecloudv1alpha1.DeleteVMRequest{Key: keyOf(r), Id: r.PathValue("id")})
		reply(w, answer, err)
	})
	return mux
}

// keyOf is the bearer token.
func keyOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// wanted reads what a list is to hold.
func wanted(r *http.Request) (tags map[string]string, size int32) {
	tags = map[string]string{}
	for _, tag := range r.URL.Query()["tag"] {
		key, value, _ := strings.Cut(tag, "=")
		tags[key] = value
	}
	n, _ := strconv.ParseInt(r.URL.Query().Get("page_size"), 10, 32) // what is no number leaves it to the cloud
	return tags, int32(n)
}

// made reads what is to be made, and makes it.
func made[Request any, Answer proto.Message, P interface {
	*Request
	proto.Message
}](create func(context.Context, P) (Answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request := P(new(Request))
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = protojson.Unmarshal(raw, request)
		}
		if err != nil {
			reply(w, nil, refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_BAD_REQUEST, "body", "The body cannot be read."))
			return
		}
		fields := request.ProtoReflect()
		fields.Set(fields.Descriptor().Fields().ByName("key"), protoreflect.ValueOfString(keyOf(r)))
		answer, err := create(r.Context(), request)
		reply(w, answer, err)
	}
}

// httpStatus is how HTTP says what went wrong.
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument: http.StatusBadRequest, codes.Unauthenticated: http.StatusUnauthorized, codes.PermissionDenied: http.StatusForbidden,
	codes.NotFound: http.StatusNotFound, codes.AlreadyExists: http.StatusConflict, codes.FailedPrecondition: http.StatusConflict,
	codes.ResourceExhausted: http.StatusUnprocessableEntity, codes.Unavailable: http.StatusServiceUnavailable,
}

// reply writes an answer or an error. A call whose answer is lost ends its connection.
func reply(w http.ResponseWriter, answer proto.Message, err error) {
	if errors.Is(err, testcloud.ErrBroken) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if err == nil {
		raw, _ := protojson.MarshalOptions{UseProtoNames: true}.Marshal(answer) // what was made here can be written
		_, _ = w.Write(raw)                                                     // the caller may have gone
		return
	}
	s := status.Convert(err)
	code := fakecloudv1alpha1.ErrorCode_ERROR_CODE_INTERNAL
	answered, known := httpStatus[s.Code()]
	if !known {
		answered = http.StatusInternalServerError
	}
	for _, detail := range s.Details() {
		said, is := detail.(*fakecloudv1alpha1.CloudError)
		if !is {
			continue
		}
		code = said.GetCode()
		if code == fakecloudv1alpha1.ErrorCode_ERROR_CODE_TOO_MANY_REQUESTS {
			answered = http.StatusTooManyRequests
			w.Header().Set("Retry-After", strconv.Itoa(int(said.GetRetryAfter().AsDuration().Seconds())))
		}
	}
	w.WriteHeader(answered)
	// Strings can be written.
	raw, _ := json.Marshal(map[string]string{"code": strings.TrimPrefix(code.String(), "ERROR_CODE_"), "message": s.Message()})
	_, _ = w.Write(raw)
}
