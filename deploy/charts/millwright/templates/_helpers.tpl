{{/* The reference of an image of ours: (list $ "name"). */}}
{{- define "millwright.image" -}}
{{- $root := index . 0 -}}
{{- $images := $root.Values.images -}}
{{- $tag := $images.tag | default $root.Chart.AppVersion -}}
{{- if eq $tag "v0.0.0" }}{{ fail "images.tag: this chart is of no release, so say which images it is for, as they were made by `make images VERSION=v0.1.0`" }}{{ end -}}
{{ trimSuffix "/" $images.registry }}/{{ index . 1 }}:{{ $tag }}
{{- end }}

{{/*
The objects of files, in the release's namespace: (dict "root" $ "files" "files/rbac/*.yaml"). keep: true has them stay when the
release is uninstalled; skip is a list of names that are left out; labels are added.
*/}}
{{- define "millwright.objects" -}}
{{- range $path, $_ := .root.Files.Glob .files }}
{{- range splitList "\n---\n" ($.root.Files.Get $path | replace "millwright-system" $.root.Release.Namespace) }}
{{- $object := fromYaml . }}
{{- if and $object.kind (not (has $object.metadata.name ($.skip | default list))) }}
{{- if $.keep }}
{{- $_ := set $object.metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") ($object.metadata.annotations | default dict)) }}
{{- end }}
{{- with $.labels }}
{{- $_ := set $object.metadata "labels" (merge (deepCopy .) ($object.metadata.labels | default dict)) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What containers of the pod may do: nothing but run. */}}
{{- define "millwright.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end }}

{{/* A driver as a native sidecar: (list $ "name" settings). */}}
{{- define "millwright.sidecar" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $driver := index . 2 -}}
{{- $clouds := and (eq $name "openstack") $driver.cloudsSecret -}}
- name: driver-{{ $name }}
  image: {{ if $driver.enabled }}{{ include "millwright.image" (list $root $driver.image) }}{{ else }}{{ $driver.image }}{{ end }}
  imagePullPolicy: {{ $root.Values.images.pullPolicy }}
  restartPolicy: Always
  args:
    - --endpoint=unix:///run/millwright/{{ $name }}.sock
    {{- with $driver.args }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or $clouds $driver.env }}
  env:
    {{- if $clouds }}
    - name: OS_CLIENT_CONFIG_FILE
      value: /etc/openstack/clouds.yaml
    - name: OS_CLOUD
      value: {{ $driver.cloud | quote }}
    {{- end }}
    {{- with $driver.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- with $driver.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "millwright.securityContext" $root | nindent 4 }}
  volumeMounts:
    - name: drivers
      mountPath: /run/millwright
    {{- if $clouds }}
    - name: openstack-clouds
      mountPath: /etc/openstack
      readOnly: true
    {{- end }}
    {{- with $driver.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* The names of objects about Nodes, which are not needed where the Nodes are elsewhere. */}}
{{- define "millwright.skipped" -}}
{{- if .Values.workload.kubeconfigSecret }}
- millwright-manager-workload
- millwright-node-bootstrapper
{{- end }}
{{- end }}

{{/*
A certificate for the webhook that the release signs itself, as YAML: made (seconds since 1970), data of its Secret, and bundle, the CAs to
trust. An upgrade after 90 days makes a new one. The bundle then has the CA of before as well, until pods have the new files. The CA's key
is kept nowhere, so the certificate is good for ten years: a release that is not upgraded goes on.
*/}}
{{- define "millwright.webhookCertificate" -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace "millwright-webhook" | default dict }}
{{- $data := $secret.data | default dict }}
{{- $now := now | unixEpoch | int64 }}
{{- $made := dig "metadata" "annotations" "cluster.k8s.io/certificate-made" "0" $secret | int64 }}
{{- $bundle := index $data "ca.crt" | default "" | b64dec }}
{{- if or (not (index $data "tls.key")) (gt (sub $now $made) 7776000) }}
{{- $name := printf "millwright-webhook.%s.svc" .Release.Namespace }}
{{- $authority := genCA $name 3650 }}
{{- $certificate := genSignedCert $name nil (list $name) 3650 $authority }}
{{- $made = $now }}
{{- $bundle = print $authority.Cert $bundle }}
{{- $data = dict "ca.crt" ($authority.Cert | b64enc) "tls.crt" ($certificate.Cert | b64enc) "tls.key" ($certificate.Key | b64enc) }}
{{- end }}
{{- dict "made" (toString $made) "data" $data "bundle" ($bundle | b64enc) | toYaml }}
{{- end }}
