//! The files, ports and command line of an ensemble's servers.

use std::{
    ffi::OsString,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Child, Command, StartError, ZooKeeperConfig, ports, programs, spawn::Place, zookeeper::links::Links,
};

const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
/// How long a server may be out of touch with its leader. Wall time, not ticks: a short tick is for short sessions,
/// and must not make the ensemble fall apart on a busy machine.
const SYNC: Duration = Duration::from_secs(5);
const INIT: Duration = Duration::from_secs(10);

/// For distributions that log through logback, whose default is to log everything. Those that log through slf4j's
/// simple back end read the properties below instead.
const LOGBACK: &str = r#"<configuration>
  <appender name="log" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{yyyy-MM-dd'T'HH:mm:ss.SSS} [%thread] %level %logger - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="log"/></root>
</configuration>
"#;

/// A short life on a small machine: a quick start, a small heap, nothing written outside the run folder.
const JAVA: [&str; 13] = [
    "-Xms32m",
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
    "-Dzookeeper.jmx.log4j.disable=true",
    // A log file is allocated ahead in steps of so many KiB; the default of 64 MiB each is for big disks.
    "-Dzookeeper.preAllocSize=4096",
    // Lock directories are containers: how often the server looks for empty ones, to remove them.
    "-Dznode.container.checkIntervalMs=2000",
    "-Dzookeeper.admin.enableServer=false",
];

/// What one server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Leader,
    Follower,
    Standalone,
}

impl Mode {
    /// From the answer to `srvr`; none while it does not serve.
    pub(super) fn of(answer: &str) -> Option<Self> {
        match answer.lines().find_map(|line| line.strip_prefix("Mode: "))? {
            "leader" => Some(Self::Leader),
            "follower" => Some(Self::Follower),
            "standalone" => Some(Self::Standalone),
            _ => None,
        }
    }
}

/// One server's place.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) client: SocketAddr,
    folder: PathBuf,
}

/// Everything that is fixed before the first start.
#[derive(Debug)]
pub(super) struct Layout {
    place: Place,
    java: PathBuf,
    classpath: OsString,
    pub(super) servers: Vec<Server>,
    pub(super) links: Links,
}

/// The name of a server in the run.
pub(super) fn name(server: usize) -> String {
    format!("zookeeper-{}", server + 1)
}

impl Layout {
    pub(super) fn create(place: &Place, config: ZooKeeperConfig) -> Result<Self, StartError> {
        let (java, classpath) = (programs::java()?, programs::zookeeper_classpath()?);
        let failed = |doing, path: &Path| {
            let path = path.to_path_buf();
            move |source| StartError::Io { doing, path, source }
        };
        let ports = ports::free(config.servers * 3).map_err(failed("find free ports for", &place.path))?;
        let ports: Vec<[u16; 3]> = ports.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect();
        let links = if config.cuttable { Links::between(&ports) } else { Ok(Links::default()) };
        let links = links.map_err(failed("start the links of", &place.path))?;
        let mut servers = Vec::with_capacity(config.servers);
        for (index, &[client, ..]) in ports.iter().enumerate() {
            let folder = place.path.join(name(index));
            let data = folder.join("data");
            fs::create_dir_all(&data).map_err(failed("make the folder", &data))?;
            let files = [
                (data.join("myid"), format!("{}\n", index + 1)),
                (folder.join("zoo.cfg"), zoo_cfg(&config, &data, index, &ports, &links)),
                (folder.join("logback.xml"), LOGBACK.to_owned()),
            ];
            for (path, text) in files {
                fs::write(&path, text).map_err(failed("write", &path))?;
            }
            servers.push(Server { client: (Ipv4Addr::LOCALHOST, client).into(), folder });
        }
        Ok(Self { place: place.clone(), java, classpath, servers, links })
    }

    /// Starts a server; it does not serve yet.
    pub(super) fn spawn(&self, server: usize) -> Result<Child, StartError> {
        let folder = &self.servers[server].folder;
        let mut temp = OsString::from("-Djava.io.tmpdir=");
        temp.push(folder);
        let mut classpath = folder.clone().into_os_string();
        classpath.push(":");
        classpath.push(&self.classpath);
        Command::new(name(server), &self.java)
            .args(JAVA)
            .arg(temp)
            .arg("-cp")
            .arg(classpath)
            .arg(MAIN)
            .arg(folder.join("zoo.cfg"))
            .spawn_in(&self.place)
    }
}

fn zoo_cfg(config: &ZooKeeperConfig, data: &Path, own: usize, ports: &[[u16; 3]], links: &Links) -> String {
    let [client, ..] = ports[own];
    let ZooKeeperConfig { tick, min_session, max_session, .. } = config;
    let ticks = |time: Duration| time.as_millis().div_ceil(tick.as_millis()).max(2);
    let mut text = format!(
        "tickTime={}\n\
         initLimit={}\n\
         syncLimit={}\n\
         dataDir={}\n\
         clientPort={client}\n\
         clientPortAddress=127.0.0.1\n\
         maxClientCnxns=0\n\
         minSessionTimeout={}\n\
         maxSessionTimeout={}\n\
         4lw.commands.whitelist=*\n\
         admin.enableServer=false\n",
        tick.as_millis(),
        ticks(INIT),
        ticks(SYNC),
        data.display(),
        min_session.as_millis(),
        max_session.as_millis(),
    );
    if ports.len() > 1 {
        let servers = ports.iter().enumerate().map(|(server, &[_, quorum, election])| {
            let [quorum, election] = links.ports(own, server).unwrap_or([quorum, election]);
            format!("server.{}=127.0.0.1:{quorum}:{election}\n", server + 1)
        });
        text.extend(servers);
    }
    text
}
