# The image contains only the program. Build it with: docker build -t kontor .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG RELEASE
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${RELEASE:+-X kontor/modules/commands.release=$RELEASE}" -o /kontor . \
    && mkdir -p /files && mkdir -m 700 /files/data && chown 65532:65532 /files/data

FROM scratch
COPY --from=build /kontor /kontor
COPY --from=build /src/LICENSE /src/licences/THIRD_PARTY_LICENSES /licences/
# Certificates of public authorities, for mail servers and SMS gateways over TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
# Copy the parent: a copied directory gets mode 0755, its content keeps owner and mode. Other users cannot read /data.
COPY --from=build /files/ /
USER 65532:65532
ENV KONTOR_DATA_DIR=/data KONTOR_SERVER_LISTEN=0.0.0.0:8080 KONTOR_SERVER_BASE_URL=http://localhost:8080
VOLUME /data
EXPOSE 8080
# Docker's HEALTHCHECK: 0 means ready. Images in OCI format ignore it; set "docker run --health-cmd" or a readiness probe there.
HEALTHCHECK --interval=30s --timeout=6s --start-period=60s --retries=3 CMD ["/kontor", "ready"]
ENTRYPOINT ["/kontor"]
CMD ["serve"]
