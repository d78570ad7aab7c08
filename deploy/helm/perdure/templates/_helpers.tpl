{{- define "perdure.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "perdure.selector" -}}
app.kubernetes.io/name: perdure
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "perdure.labels" -}}
{{ include "perdure.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "perdure.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else if .Values.serviceAccount.create }}{{ include "perdure.name" . }}{{ else }}default{{ end -}}
{{- end }}

{{- define "perdure.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The variables of a process: settings from the values, secrets of all and of its kind. */}}
{{- define "perdure.environment" -}}
envFrom:
  - configMapRef:
      name: {{ include "perdure.name" .root }}
{{- range concat .root.Values.secrets.all (index .root.Values.secrets .component) }}
  - secretRef:
      name: {{ . }}
{{- end }}
{{- end }}

{{- define "perdure.container" -}}
image: {{ include "perdure.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{ include "perdure.environment" . }}
{{- end }}

{{- define "perdure.pod" -}}
serviceAccountName: {{ include "perdure.serviceAccount" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "perdure.selector" . | nindent 8 }}
volumes:
  - name: data
    emptyDir:
      sizeLimit: {{ .values.disk }}
  - name: tmp
    emptyDir:
      sizeLimit: 1Gi
{{- end }}

{{- define "perdure.mounts" -}}
volumeMounts:
  - name: data
    mountPath: /data
  - name: tmp
    mountPath: /tmp
{{- end }}

{{/* A change of settings rolls the pods; of a secret, whoever changes it does (`kubectl rollout restart`). */}}
{{- define "perdure.annotations" -}}
checksum/settings: {{ include (print .root.Template.BasePath "/settings.yaml") .root | sha256sum }}
{{- if .root.Values.metrics.enabled }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .root.Values.metrics.port | quote }}
{{- end }}
{{- with .values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "perdure.queue" -}}
{{ .root.Values.taskQueue }}{{ if eq .component "model" }}-llm{{ else if eq .component "tools" }}-tools{{ end }}
{{- end }}
