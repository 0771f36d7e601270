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
