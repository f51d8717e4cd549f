#!/bin/bash
# The part of the official image's contract that compose.yaml uses: a configuration from ZOO_* variables, written once.
set -euo pipefail

if [ ! -e /conf/zoo.cfg ]; then
    {
        echo "dataDir=/data"
        echo "dataLogDir=/datalog"
        echo "tickTime=${ZOO_TICK_TIME:-2000}"
        echo "initLimit=${ZOO_INIT_LIMIT:-5}"
        echo "syncLimit=${ZOO_SYNC_LIMIT:-2}"
        echo "maxClientCnxns=${ZOO_MAX_CLIENT_CNXNS:-60}"
        echo "standaloneEnabled=true"
        echo "admin.enableServer=${ZOO_ADMINSERVER_ENABLED:-true}"
        echo "4lw.commands.whitelist=${ZOO_4LW_COMMANDS_WHITELIST:-srvr}"
        if [ -z "${ZOO_SERVERS:-}" ]; then
            echo "clientPort=2181"
        else
            printf '%s\n' ${ZOO_SERVERS}
        fi
        # Debian's package lacks the provider of Prometheus metrics: zookeeper-metrics.py stands in for it.
        printf '%s\n' ${ZOO_CFG_EXTRA:-} | grep -v '^metricsProvider\.' || true
    } >/conf/zoo.cfg
fi
[ -e /data/myid ] || echo "${ZOO_MY_ID:-1}" >/data/myid

zookeeper-metrics.py &
# shellcheck disable=SC2086 # several arguments
exec java ${JVMFLAGS:-} -Djava.net.preferIPv4Stack=true -Dzookeeper.jmx.log4j.disable=true \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=info -Dorg.slf4j.simpleLogger.showDateTime=true \
    -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar \
    org.apache.zookeeper.server.quorum.QuorumPeerMain /conf/zoo.cfg
