{{/* The first part of all names, short enough for the longest of them. */}}
{{- define "foldlake.fullname" -}}
{{- default (ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name)) .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "foldlake.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* The labels by which a component's pods are selected; takes (list root component). */}}
{{- define "foldlake.selector" -}}
app.kubernetes.io/name: {{ (index . 0).Chart.Name }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The metadata of an object; takes (list root component name). */}}
{{- define "foldlake.metadata" -}}
name: {{ index . 2 }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "foldlake.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
  helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{/* The domain of the nodes' own host names. */}}
{{- define "foldlake.nodesDomain" -}}
{{ include "foldlake.fullname" . }}-nodes.{{ .Release.Namespace }}.svc
{{- end }}

{{/* A value of a setting as text. Helm reads numbers as floats, and would print 2000000 as 2e+06. */}}
{{- define "foldlake.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end -}}
{{- end }}

{{/* The variables with the files of the secrets; takes (list root isNode). Nodes get none of Airflow's. Empty if there are none. */}}
{{- define "foldlake.secretVariables" -}}
{{- $variables := list -}}
{{- range $setting, $key := (index . 0).Values.secrets.keys -}}
{{- if not (and (index $ 1) (hasPrefix "FOLDLAKE_AIRFLOW_" $setting)) -}}
{{- $variables = append $variables (dict "name" (printf "%s_FILE" $setting) "value" (printf "/run/foldlake/%s" $setting)) -}}
{{- end -}}
{{- end -}}
{{- with $variables }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* The volume of the secrets' files; takes (list root isNode). Empty if there are none. */}}
{{- define "foldlake.secretVolume" -}}
{{- $items := list -}}
{{- range $setting, $key := (index . 0).Values.secrets.keys -}}
{{- if not (and (index $ 1) (hasPrefix "FOLDLAKE_AIRFLOW_" $setting)) -}}
{{- $items = append $items (dict "key" $key "path" $setting) -}}
{{- end -}}
{{- end -}}
{{- if $items -}}
- name: secrets
  secret:
    secretName: {{ (index . 0).Values.secrets.existingSecret }}
    defaultMode: 0440
    items: {{- toYaml $items | nindent 6 }}
{{- end -}}
{{- end }}

{{/* How callers are authenticated: the setting FOLDLAKE_AUTH. */}}
{{- define "foldlake.auth" -}}
{{ default "keys" (get .Values.settings "FOLDLAKE_AUTH") }}
{{- end }}

{{/* The scheme of the nodes' URLs for callers. */}}
{{- define "foldlake.scheme" -}}
{{ ternary "https" "http" (ne .Values.callerCertificate.existingSecret "") }}
{{- end }}

{{/* The variables with the certificates of a container; takes (list root isNode). Empty if there are none. */}}
{{- define "foldlake.certificateVariables" -}}
{{- $root := index . 0 -}}
{{- $name := ternary "nodes" "jobs" (index . 1) -}}
{{- if ne (include "foldlake.auth" $root) "none" -}}
- {name: FOLDLAKE_NODE_TLS_CA_FILE, value: /run/foldlake-peers/ca.pem}
- {name: FOLDLAKE_NODE_TLS_CERT_FILE, value: /run/foldlake-peers/{{ $name }}.pem}
- {name: FOLDLAKE_NODE_TLS_KEY_FILE, value: /run/foldlake-peers/{{ $name }}-key.pem}
{{- end }}
{{- if and (index . 1) $root.Values.callerCertificate.existingSecret }}
- {name: FOLDLAKE_TLS_CERT_FILE, value: /run/foldlake-callers/tls.crt}
- {name: FOLDLAKE_TLS_KEY_FILE, value: /run/foldlake-callers/tls.key}
{{- end }}
{{- end }}

{{/* The volumes of these certificates: nodes get only theirs, jobs only that of jobs. */}}
{{- define "foldlake.certificateVolumes" -}}
{{- $root := index . 0 -}}
{{- $name := ternary "nodes" "jobs" (index . 1) -}}
{{- if ne (include "foldlake.auth" $root) "none" -}}
- name: node-certificates
  secret:
    secretName: {{ $root.Values.nodeCertificates.existingSecret }}
    defaultMode: 0440
    items:
      {{- range list "ca.pem" (printf "%s.pem" $name) (printf "%s-key.pem" $name) }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- if and (index . 1) $root.Values.callerCertificate.existingSecret }}
- name: caller-certificate
  secret:
    secretName: {{ $root.Values.callerCertificate.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* What all containers have; takes (list root isNode). */}}
{{- define "foldlake.container" -}}
{{- $root := index . 0 -}}
image: {{ include "foldlake.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext: {{- toYaml $root.Values.securityContext | nindent 2 }}
envFrom:
  - configMapRef: {name: {{ include "foldlake.fullname" $root }}-settings}
volumeMounts:
  - {name: home, mountPath: /var/lib/foldlake}
  - {name: tmp, mountPath: /tmp}
{{- if include "foldlake.secretVolume" . }}
  - {name: secrets, mountPath: /run/foldlake, readOnly: true}
{{- end }}
{{- if ne (include "foldlake.auth" $root) "none" }}
  - {name: node-certificates, mountPath: /run/foldlake-peers, readOnly: true}
{{- end }}
{{- if and (index . 1) $root.Values.callerCertificate.existingSecret }}
  - {name: caller-certificate, mountPath: /run/foldlake-callers, readOnly: true}
{{- end }}
{{- if $root.Values.readModels.volume }}
  - {name: read-models, mountPath: /opt/read-models, readOnly: true}
{{- end }}
{{- if $root.Values.sharedVolume.enabled }}
{{- range list "lake" "reports" "verified" }}
  - {name: shared, mountPath: /var/lib/foldlake/{{ . }}, subPath: {{ . }}, readOnly: {{ index $ 1 }}}
{{- end }}
{{- end }}
{{- with $root.Values.extraVolumeMounts }}
{{ toYaml . | indent 2 }}
{{- end }}
{{- end }}

{{/* The volumes of a pod but its home; takes (list root isNode). */}}
{{- define "foldlake.volumes" -}}
{{- $root := index . 0 -}}
- name: tmp
  emptyDir: {}
{{- with include "foldlake.secretVolume" . }}
{{ . }}
{{- end }}
{{- with include "foldlake.certificateVolumes" . | trim }}
{{ . }}
{{- end }}
{{- with $root.Values.readModels.volume }}
- name: read-models
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $root.Values.sharedVolume.enabled }}
- name: shared
  persistentVolumeClaim: {claimName: {{ default (printf "%s-shared" (include "foldlake.fullname" $root)) $root.Values.sharedVolume.existingClaim }}}
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The fields of a pod's specification that are the same for all pods. */}}
{{- define "foldlake.pod" -}}
serviceAccountName: {{ include "foldlake.fullname" . }}
automountServiceAccountToken: false
# A Service named foldlake-node would set FOLDLAKE_NODE_PORT, which is a setting.
enableServiceLinks: false
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where a component's pods run; takes its values. */}}
{{- define "foldlake.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Creates the folders of the shared volume as their owner, before the kubelet would create them as root. */}}
{{- define "foldlake.sharedFolders" -}}
- name: shared-folders
  image: {{ include "foldlake.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [mkdir, --parents, /shared/lake, /shared/reports, /shared/verified]
  securityContext: {{- toYaml .Values.securityContext | nindent 4 }}
  resources:
    limits: {memory: 64Mi}
  volumeMounts:
    - {name: shared, mountPath: /shared}
{{- end }}
