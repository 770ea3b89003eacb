# Foldlake's own image: Airflow's processes with the stream driver, and the query nodes.
# Airflow's image provides only the system; Python packages and jars come from this checkout's lock files.
FROM apache/airflow:3.3.2-python3.11

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner=airflow --group=root /opt/foldlake /opt/foldlake-tools /var/lib/foldlake /var/lib/foldlake/reports /var/lib/checkpoints

USER airflow
WORKDIR /opt/foldlake
ENV FOLDLAKE_HOME=/var/lib/foldlake \
    FOLDLAKE_TOOLS=/opt/foldlake-tools \
    PYTHONPATH=/opt/foldlake \
    PYTHONUNBUFFERED=1

# Rarely changing files first: the environments and jars get a separate layer.
COPY --chown=airflow:root foldlake requirements*.txt ./
COPY --chown=airflow:root cli ./cli
COPY --chown=airflow:root include ./include
COPY --chown=airflow:root stack ./stack
RUN ./foldlake prepare
COPY --chown=airflow:root . .
# Trains the stream driver, which needs the code.
RUN ./foldlake prepare

ENTRYPOINT ["/usr/bin/dumb-init", "--", "/opt/foldlake-tools/main/bin/python", "-m", "stack.foreground"]
