# The image contains only the program. Build it with: docker build -t kontor .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG RELEASE
RUN CGO_ENABLED=0 go build -trimpath -ldflags "${RELEASE:+-X kontor/modules/commands.release=$RELEASE}" -o /kontor . \
    && mkdir -m 700 /data

FROM scratch
COPY --from=build /kontor /kontor
# Certificates of public authorities, for mail servers and SMS gateways over TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
ENV KONTOR_DATA_DIR=/data KONTOR_SERVER_LISTEN=0.0.0.0:8080 KONTOR_SERVER_BASE_URL=http://127.0.0.1:8080
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/kontor"]
CMD ["serve"]
