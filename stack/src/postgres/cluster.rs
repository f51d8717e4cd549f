//! The data folder of a private PostgreSQL, its configuration and its user.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, chown},
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::{Gid, Uid, User};
use uuid::Uuid;

use crate::{
    Child, Command, StartError, ports,
    postgres::finished,
    programs::{self, PostgresPrograms},
    spawn::Place,
};

/// The superuser of the cluster.
pub(super) const USER: &str = "lockstock";
const INITDB: Duration = Duration::from_mins(1);

/// A cluster that initdb has made.
#[derive(Debug)]
pub(super) struct Cluster {
    place: Place,
    programs: PostgresPrograms,
    data: PathBuf,
    user: Option<(Uid, Gid)>,
    /// Shown in the titles of all its processes.
    pub(super) name: String,
    pub(super) port: u16,
    pub(super) password: String,
}

impl Cluster {
    pub(super) async fn create(place: &Place) -> Result<Self, StartError> {
        let programs = programs::postgres()?;
        let folder = place.path.join("postgres");
        let failed = |doing, path: &Path| {
            let path = path.to_path_buf();
            move |source| StartError::Io { doing, path, source }
        };
        let port = ports::free(1).map_err(failed("find a free port for", &folder))?[0];
        let user = unprivileged().map_err(failed("find a user to run PostgreSQL as, for", &folder))?;
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed("make the folder", &folder))?;
        let password = Uuid::new_v4().simple().to_string();
        let password_file = folder.join("password");
        write_private(&password_file, &password).map_err(failed("write", &password_file))?;
        if let Some((uid, gid)) = user {
            for path in [&password_file, &folder] {
                chown(path, Some(uid.as_raw()), Some(gid.as_raw())).map_err(failed("give away", path))?;
            }
        }
        let name = format!("lockstock-{}", Uuid::new_v4().simple());
        let data = folder.join("data");
        let cluster = Self { place: place.clone(), programs, data, user, name, port, password };
        cluster.initdb(&password_file).await.map_err(|error| cluster.explained(error))?;
        let settings = cluster.data.join("postgresql.conf");
        let append = OpenOptions::new().append(true).open(&settings);
        append
            .and_then(|mut file| file.write_all(cluster.settings().as_bytes()))
            .map_err(failed("write", &settings))?;
        Ok(cluster)
    }

    /// Starts the server; it is not ready yet.
    pub(super) fn spawn(&self) -> Result<Child, StartError> {
        let server = Command::new("postgres", &self.programs.postgres).arg("-D").arg(&self.data);
        // The environment could change what a client sees (time zone, locale) and where the server looks.
        server.env_remove_prefix("PG").env("TZ", "UTC").user(self.user).spawn_in(&self.place)
    }

    async fn initdb(&self, password_file: &Path) -> Result<(), StartError> {
        let initdb = Command::new("initdb", &self.programs.initdb)
            .args(["--username", USER, "--auth", "scram-sha-256", "--pwfile"])
            .arg(password_file)
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions", "--pgdata"])
            .arg(&self.data);
        let initdb = initdb.env_remove_prefix("PG").may_end().user(self.user).spawn_in(&self.place)?;
        finished(&initdb, INITDB).await
    }

    /// As another user than ours it may fail because that user cannot reach the folder; then that is the reason.
    fn explained(&self, error: StartError) -> StartError {
        let closed = |folder: &&Path| fs::metadata(folder).is_ok_and(|meta| meta.mode() & 0o001 == 0);
        match (self.user, self.place.path.ancestors().find(closed)) {
            (Some((uid, _)), Some(closed)) => {
                let why = format!(
                    "PostgreSQL refuses to run as root, and user {uid}, as which it runs instead, cannot enter {}; \
                     set LOCKSTOCK_RUN_BASE to a folder that others may pass through",
                    closed.display()
                );
                let source = io::Error::new(io::ErrorKind::PermissionDenied, why);
                StartError::Io { doing: "run PostgreSQL in", path: self.place.path.clone(), source }
            }
            _ => error,
        }
    }

    fn settings(&self) -> String {
        let Self { port, name, .. } = self;
        format!(
            "\n\
             # Private to one run.\n\
             listen_addresses = '127.0.0.1'\n\
             port = {port}\n\
             unix_socket_directories = ''\n\
             cluster_name = '{name}'\n\
             # Three services of 16 connections, the audit, and the tests that share one server.\n\
             max_connections = 300\n\
             # Nothing outside the data folder outlives a kill.\n\
             dynamic_shared_memory_type = mmap\n\
             # A backend whose client was killed ends even in the middle of a statement.\n\
             client_connection_check_interval = 1s\n\
             jit = off\n\
             timezone = 'UTC'\n\
             log_timezone = 'UTC'\n\
             log_line_prefix = '%m [%p] %q%u@%d %a '\n\
             log_lock_waits = on\n"
        )
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

/// PostgreSQL refuses to run as root. Root becomes `postgres`, where there is none `nobody`; others stay who they are.
fn unprivileged() -> io::Result<Option<(Uid, Gid)>> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Some(user) = User::from_name(name)? {
            return Ok(Some((user.uid, user.gid)));
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "this machine has neither `postgres` nor `nobody`"))
}
