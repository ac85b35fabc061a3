# The image of a provider. Build it in the root of the repository:
#
#   docker build -f packaging/docker/provider.Dockerfile -t holdfast-provider .
#
# Its state is a volume that belongs to uid 65532; keep it, it holds the keys:
#
#   docker volume create holdfast-provider
#   docker run --rm -it -v holdfast-provider:/state holdfast-provider join holdfast://HOST:PORT/NETWORK
#   docker run -d --name provider --restart unless-stopped --read-only --cap-drop ALL \
#     --security-opt no-new-privileges --ulimit nofile=65536 -v holdfast-provider:/state holdfast-provider
#   docker exec provider holdfast provider status

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends cmake gcc g++ make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p holdfast --bin holdfast

FROM debian:bookworm-slim
COPY --from=build /src/target/release/holdfast /usr/local/bin/holdfast
RUN install -d -m 0700 -o 65532 -g 65532 /state
ENV HOLDFAST_PROVIDER_STATE=/state
USER 65532:65532
VOLUME /state
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=10s --start-period=60s CMD ["holdfast", "provider", "status"]
ENTRYPOINT ["holdfast", "provider"]
CMD ["up"]
