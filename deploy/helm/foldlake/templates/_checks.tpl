{{/* Fails with what to do about a value that cannot work. What a value's type rules out is in values.schema.json. */}}
{{- define "foldlake.check" -}}
{{- $values := .Values -}}
{{- if not $values.image.repository -}}
{{- fail "image.repository is empty: build the image from the checkout's Dockerfile, push it, and name it here (docs/kubernetes.md)" -}}
{{- end -}}
{{- if not $values.kafka.bootstrap -}}
{{- fail "kafka.bootstrap is empty: name your brokers, as kafka:9092" -}}
{{- end -}}
{{- if not (or $values.schemaRegistry.url (hasKey $values.secrets.keys "FOLDLAKE_SCHEMA_REGISTRY_URL")) -}}
{{- fail "schemaRegistry.url is empty: set it, or name the key of FOLDLAKE_SCHEMA_REGISTRY_URL in secrets.keys" -}}
{{- end -}}
{{- if not $values.airflow.databaseUrl -}}
{{- fail "airflow.databaseUrl is empty: set it, as postgresql+psycopg2://airflow@postgres:5432/airflow" -}}
{{- end -}}
{{- if and $values.secrets.keys (not $values.secrets.existingSecret) -}}
{{- fail "secrets.existingSecret is empty: name the Secret with the keys in secrets.keys" -}}
{{- end -}}
{{- if and $values.ingress.enabled (not $values.ingress.host) -}}
{{- fail "ingress.host is empty: name the host of the ingress, or set ingress.enabled to false" -}}
{{- end -}}
{{- if eq (include "foldlake.auth" .) "none" -}}
{{- if not (hasKey $values.settings "FOLDLAKE_ALLOW_OPEN") -}}
{{- fail "settings.FOLDLAKE_AUTH is none: every client that reaches a node may read and write. Remove it, or set settings.FOLDLAKE_ALLOW_OPEN to \"yes\" (docs/security.md)" -}}
{{- end -}}
{{- else if not $values.nodeCertificates.existingSecret -}}
{{- fail "nodeCertificates.existingSecret is empty: create the certificates of nodes and jobs, and name their Secret (docs/kubernetes.md)" -}}
{{- end -}}
{{- if and $values.serviceMonitor.enabled (ne (include "foldlake.auth" .) "none") (not $values.serviceMonitor.apiKey) -}}
{{- fail "serviceMonitor.apiKey is empty: name the Secret with an API key with which Prometheus reads the metrics, as {name: foldlake-prometheus, key: secret}" -}}
{{- end -}}
{{- $known := .Files.Get "files/settings.yaml" | fromYaml -}}
{{- range $name, $value := $values.settings -}}
{{- with get $known.refused $name -}}
{{- fail (printf "settings.%s cannot be set: %s" $name .) -}}
{{- end -}}
{{- $new := get $known.renamed $name -}}
{{- if and $new (hasKey $values.settings $new) -}}
{{- fail (printf "settings.%s and its new name, %s, are both set: remove the first" $name $new) -}}
{{- end -}}
{{- if not (or $new (has $name $known.accepted)) -}}
{{- fail (printf "settings.%s is no setting of Foldlake %s: .env.example lists them" $name $.Chart.AppVersion) -}}
{{- end -}}
{{- if hasKey $values.secrets.keys $name -}}
{{- fail (printf "%s is in settings and in secrets.keys: remove one of them" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $key := $values.secrets.keys -}}
{{- $refusal := get $known.refused $name -}}
{{- if not (or (has $name $known.accepted) (hasKey $known.renamed $name) $refusal) -}}
{{- fail (printf "secrets.keys.%s is no setting of Foldlake %s: .env.example lists them" $name $.Chart.AppVersion) -}}
{{- end -}}
{{- if and $refusal (ne $name "FOLDLAKE_SCHEMA_REGISTRY_URL") (not (contains "secrets.keys" $refusal)) -}}
{{- fail (printf "secrets.keys.%s cannot be set: %s" $name $refusal) -}}
{{- end -}}
{{- end -}}
{{- if and $values.schemaRegistry.url (hasKey $values.secrets.keys "FOLDLAKE_SCHEMA_REGISTRY_URL") -}}
{{- fail "FOLDLAKE_SCHEMA_REGISTRY_URL is in schemaRegistry.url and in secrets.keys: remove one of them" -}}
{{- end -}}
{{- $urls := merge (dict "schemaRegistry.url" $values.schemaRegistry.url "airflow.databaseUrl" $values.airflow.databaseUrl) $values.settings -}}
{{- range $name, $url := $urls -}}
{{- if regexMatch "://[^/@]*:[^/@]*@" (toString $url) -}}
{{- fail (printf "%s contains a password: put it into a Secret, and name its key in secrets.keys" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}
