# The gateway in one image: the web app, then the binary, then what runs.
#
#   docker build -t toolyard .
#   docker run -p 8787:8787 -v toolyard:/var/lib/toolyard \
#     -e TOOLYARD_SECRET_KEY=… -e TOOLYARD_PUBLIC_KEY=… -e TOOLYARD_JWT_SECRET=… toolyard

FROM node:22-bookworm-slim AS app
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
COPY api api
COPY packages packages
COPY apps apps
COPY examples examples
COPY tests/react-18 tests/react-18
COPY scripts/build-app scripts/node-path scripts/
RUN scripts/build-app

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
COPY --from=app /src/apps/chat/dist apps/chat/dist
RUN cargo build --release --locked -p toolyard \
    && install -D target/release/toolyard /out/toolyard

FROM debian:bookworm-slim
# Certificates of the vendors' addresses; times of zones.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/toolyard --shell /usr/sbin/nologin toolyard \
    && install -d -o toolyard -g toolyard -m 0700 /var/lib/toolyard \
    && install -d /etc/toolyard/agents
COPY --from=build /out/toolyard /usr/local/bin/toolyard
USER toolyard
WORKDIR /etc/toolyard
VOLUME /var/lib/toolyard
ENV TOOLYARD_DATA=/var/lib/toolyard TOOLYARD_LISTEN=0.0.0.0:8787
EXPOSE 8787
# Longer than drain_seconds: `docker stop --time 20`, or stop_grace_period.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/toolyard"]
CMD ["serve"]
