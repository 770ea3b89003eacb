# Foldlake's images. `node`: a query node. `foldlake`, the default: Airflow's processes, the stream driver with its Spark, the command line.
# Python packages and jars come from this checkout's lock files. The tag names Debian 12, the last with Java 17.
ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS base
# curl: health checks. tini: ends zombies, and passes a signal to one process, not to all of them as dumb-init does
RUN apt-get update \
    && apt-get install --yes --no-install-recommends curl tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 50000 --gid 0 --create-home foldlake
ENV FOLDLAKE_HOME=/var/lib/foldlake \
    FOLDLAKE_TOOLS=/opt/foldlake-tools \
    PYTHONPATH=/opt/foldlake \
    PYTHONUNBUFFERED=1
# A new volume takes the owner of its directory in the image.
RUN install --directory --owner=foldlake --group=root /opt/foldlake /opt/foldlake-tools /opt/read-models \
    /run/foldlake /run/foldlake-authority /run/foldlake-peers /run/foldlake-callers /var/lib/foldlake /var/lib/foldlake/lake /var/lib/foldlake/reports /var/lib/foldlake/verified
WORKDIR /opt/foldlake
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/foldlake-tools/main/bin/python", "-m", "stack.foreground"]

FROM base AS node-tools
USER foldlake
COPY requirements-bootstrap.txt requirements-node.txt ./
RUN python3 -m venv "$HOME/bootstrap" \
    && "$HOME/bootstrap/bin/pip" install --quiet --no-cache-dir --require-hashes --requirement requirements-bootstrap.txt \
    && "$HOME/bootstrap/bin/uv" venv --quiet --python python3 "$FOLDLAKE_TOOLS/main" \
    && "$HOME/bootstrap/bin/uv" pip sync --quiet --no-cache --compile-bytecode --require-hashes \
        --python "$FOLDLAKE_TOOLS/main/bin/python" requirements-node.txt \
    && rm -rf "$HOME/bootstrap"

FROM base AS node
COPY --from=node-tools --chown=foldlake:root /opt/foldlake-tools /opt/foldlake-tools
COPY --chown=foldlake:root pyproject.toml ./
COPY --chown=foldlake:root include ./include
COPY --chown=foldlake:root stack ./stack
COPY --chown=foldlake:root query_api ./query_api
COPY --chown=foldlake:root demo/systems ./demo/systems
# Compiled once: no container can keep what it compiles.
RUN /opt/foldlake-tools/main/bin/python -m compileall -q .
USER foldlake

FROM base AS system
# procps: Spark's scripts
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
ENV JAVA_HOME=/usr/lib/jvm/java-17-openjdk
RUN ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" "$JAVA_HOME"

FROM system AS tools
USER foldlake
ENV PIP_NO_CACHE_DIR=1
# Only the lock files, and the code that installs them: no change of other code repeats the downloads.
COPY --chown=foldlake:root foldlake requirements-bootstrap.txt requirements-stream.txt ./
COPY --chown=foldlake:root requirements-image.txt ./requirements.txt
COPY --chown=foldlake:root stack/__init__.py stack/jars.lock ./stack/
COPY --chown=foldlake:root stack/provisioning ./stack/provisioning
COPY --chown=foldlake:root include/__init__.py include/files.py include/waiting.py ./include/
RUN UV_CACHE_DIR="$FOLDLAKE_TOOLS/uv" python3 -c "import os, pathlib; from stack.provisioning import launcher, layout; \
        launcher.make_ready(layout.Layout(pathlib.Path(os.environ['FOLDLAKE_TOOLS'])))" \
    && rm -rf "$FOLDLAKE_TOOLS/uv" "$HOME/.cache"
# Trains the stream driver and the lake's jobs, which needs the code, then removes the servers, which have images of their own.
COPY --chown=foldlake:root include ./include
COPY --chown=foldlake:root stack ./stack
COPY --chown=foldlake:root cli ./cli
COPY --chown=foldlake:root query_api ./query_api
COPY --chown=foldlake:root spark_jobs ./spark_jobs
COPY --chown=foldlake:root demo/systems ./demo/systems
RUN ./foldlake prepare \
    && test -f /opt/foldlake-tools/driver.aot && test -f /opt/foldlake-tools/lake.jsa \
    && cd /opt/foldlake-tools && rm -rf bootstrap registry jars/kafka */lib/python3*/site-packages/pyspark/examples \
    && for environment in main stream; do \
        $environment/bin/python -m compileall -q -j 0 $environment/lib/python3*/site-packages > /dev/null || true; done

FROM system AS foldlake
COPY --from=tools --chown=foldlake:root /opt/foldlake-tools /opt/foldlake-tools
COPY --chown=foldlake:root foldlake pyproject.toml requirements-bootstrap.txt requirements-stream.txt ./
COPY --chown=foldlake:root requirements-image.txt ./requirements.txt
COPY --chown=foldlake:root include ./include
COPY --chown=foldlake:root stack ./stack
COPY --chown=foldlake:root cli ./cli
COPY --chown=foldlake:root spark_jobs ./spark_jobs
COPY --chown=foldlake:root query_api ./query_api
COPY --chown=foldlake:root dags ./dags
COPY --chown=foldlake:root demo ./demo
RUN /opt/foldlake-tools/main/bin/python -m compileall -q .
USER foldlake
