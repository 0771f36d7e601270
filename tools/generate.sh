#!/usr/bin/env bash
# Generates all code and manifests that have a source elsewhere in the tree.
#
#   generate.sh         writes them where they belong       (make generate)
#   generate.sh DIR     writes them under DIR instead, laid out the same way
#   generate.sh --list  prints the paths of the generated files there are
#
# Needs bin/tools; `make generate` builds those first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Every generated file has one of these names, and no other file has.
list() {
  find . -type d \( -name .git -o -name bin \) -prune -o -type f \( \
    -name '*.pb.go' -o -name 'zz_generated.*.go' -o \
    -path './deploy/crds/cluster.k8s.io_*.yaml' -o -path ./deploy/rbac/role.yaml -o \
    -path ./deploy/dashboards/dashboards.yaml -o -path './deploy/charts/millwright/files/*' \
    \) -print | LC_ALL=C sort
}
if [ "${1-}" = --list ]; then
  list
  exit 0
fi

root=$PWD
out=${1:-$root}
controller_gen=$root/bin/tools/controller-gen

# Go of the contract, and of every other .proto that buf.yaml names.
bin/tools/buf generate --output "$out"

# DeepCopy methods and CustomResourceDefinitions from the API's types.
(cd api && "$controller_gen" object crd paths=./v1alpha1 \
  output:object:dir="$out/api/v1alpha1" output:crd:dir="$out/deploy/crds")

# The manager's roles from the +kubebuilder:rbac markers of the controllers.
(cd core && "$controller_gen" rbac:roleName=millwright-manager paths=./... \
  output:rbac:dir="$out/deploy/rbac")

# Dashboards from their short form.
mkdir -p "$out/deploy/dashboards"
(cd tools/monitoring && GOWORK=off go run . "$out/deploy/dashboards/dashboards.yaml")

# The chart's copies of what kustomize applies as it is: Helm reads nothing outside of a chart.
copies=$out/deploy/charts/millwright/files
for folder in alerts crds dashboards rbac webhook; do
  mkdir -p "$copies/$folder"
  cp deploy/$folder/*.yaml "$copies/$folder/"
  rm "$copies/$folder/kustomization.yaml"
done
rm "$copies/webhook/manager.yaml" # a patch
cp deploy/crds/bootstrap-tokens/policy.yaml "$copies/crds/bootstrap_tokens_policy.yaml"
[ "$out" = "$root" ] || { cp "$out"/deploy/crds/*.yaml "$copies/crds/" && cp "$out/deploy/rbac/role.yaml" "$copies/rbac/" && cp "$out/deploy/dashboards/dashboards.yaml" "$copies/dashboards/"; }
