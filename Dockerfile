# The official PostgreSQL image with pg_bloom:
#
#     docker build --tag pg_bloom --build-arg PG_MAJOR=17 .
#     docker run --rm --name pg_bloom --env POSTGRES_PASSWORD=secret pg_bloom
#     docker exec --user postgres pg_bloom psql -c 'CREATE EXTENSION pg_bloom'
#
# Built in one stage; the image gets no more than what `make install` copies. The target `extension` is an image of these
# files alone, below /lib and /share/extension: a volume for extension_control_path of PostgreSQL 18 or later (CloudNativePG):
#
#     docker build --target extension --tag pg_bloom-extension .
ARG PG_MAJOR=18
ARG RUST_VERSION=1.96
# Both images must have it: the library is linked with the C library of the first.
ARG DEBIAN=bookworm

FROM rust:${RUST_VERSION}-slim-${DEBIAN} AS rust

FROM postgres:${PG_MAJOR}-${DEBIAN} AS build
COPY --from=rust /usr/local/cargo /usr/local/cargo
COPY --from=rust /usr/local/rustup /usr/local/rustup
ENV CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup PATH=/usr/local/cargo/bin:$PATH
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential clang libclang-dev postgresql-server-dev-$PG_MAJOR \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /pg_bloom
COPY . .
# Not the pg_config that PATH finds first: that may be the one of another version's client library.
ENV PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config
RUN make && make install DESTDIR=/installed

FROM scratch AS extension
ARG PG_MAJOR
COPY --from=build /installed/usr/lib/postgresql/${PG_MAJOR}/lib/ /lib/
COPY --from=build /installed/usr/share/postgresql/${PG_MAJOR}/extension/ /share/extension/
COPY LICENSE /licenses/pg_bloom/

FROM postgres:${PG_MAJOR}-${DEBIAN}
COPY --from=build /installed /
