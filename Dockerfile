# `nessie serve` in a container: docs/guides/container.md.
ARG PYTHON=python:3.13-slim-bookworm

FROM ${PYTHON} AS build
ARG EXTRAS=serve,postgres
WORKDIR /src
COPY . .
RUN python -m venv /opt/nessie && \
    /opt/nessie/bin/python -m pip install --no-cache-dir --disable-pip-version-check ".[${EXTRAS}]" && \
    /opt/nessie/bin/python -m pip uninstall --yes --disable-pip-version-check pip

FROM ${PYTHON}
LABEL org.opencontainers.image.title="nessie" \
      org.opencontainers.image.description="Git for a data lake's catalog" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin nessie && \
    install --directory --owner nessie --mode 0700 /data
COPY --from=build /opt/nessie /opt/nessie
COPY docker/entrypoint /usr/local/bin/nessie-entrypoint
ENV PATH=/opt/nessie/bin:$PATH \
    NESSIE_STORE=sqlite:////data/store.sqlite
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 19120
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:19120/q/health/ready', timeout=4)"]
ENTRYPOINT ["/usr/local/bin/nessie-entrypoint"]
CMD ["serve", "--host", "0.0.0.0"]
