//! Finds the programs a run needs, and says how to install what is missing.
//!
//! An explicit variable wins over the places of a usual installation: `LOCKSTOCK_POSTGRES_BIN_DIR`, `JAVA_HOME`,
//! `ZOOKEEPER_CLASSPATH`, `LOCKSTOCK_BIN_DIR`, `LOCKSTOCK_JAEGER`, `LOCKSTOCK_PROMETHEUS`.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

const SETUP: &str = "`scripts/setup` installs it";
const BUILD: &str = "`make build` makes it";
/// Debian's jar names all others in its manifest; slf4j's simple back end makes it log to standard error.
const DEBIAN_CLASSPATH: &str = "/usr/share/java/slf4j-simple.jar:/usr/share/java/zookeeper.jar";

/// A program that is not where it was looked for.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{program} is missing (looked in {looked_in}); {remedy}")]
#[non_exhaustive]
pub struct Missing {
    /// What is missing.
    pub program: String,
    /// Where it was looked for.
    pub looked_in: String,
    /// What to do about it.
    pub remedy: String,
}

/// The two programs of a PostgreSQL server, from one installation.
#[derive(Debug, Clone)]
pub(crate) struct PostgresPrograms {
    pub(crate) initdb: PathBuf,
    pub(crate) postgres: PathBuf,
}

/// The binary `order-service` of this workspace.
pub fn order_service() -> Result<PathBuf, Missing> {
    ours("order-service")
}

/// The binary `loadtest` of this workspace.
pub fn loadtest() -> Result<PathBuf, Missing> {
    ours("loadtest")
}

/// Everything that is missing, at once.
pub fn check_all() -> Result<(), Vec<Missing>> {
    let found = [
        setpriv().map(drop),
        postgres().map(drop),
        java().map(drop),
        zookeeper_classpath().map(drop),
        order_service().map(drop),
        loadtest().map(drop),
    ];
    let missing: Vec<Missing> = found.into_iter().filter_map(Result::err).collect();
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

pub(crate) fn setpriv() -> Result<PathBuf, Missing> {
    first("setpriv (util-linux)", &["setpriv"], &search_path(), SETUP)
}

pub(crate) fn postgres() -> Result<PostgresPrograms, Missing> {
    let dirs: Vec<PathBuf> = match env::var_os("LOCKSTOCK_POSTGRES_BIN_DIR") {
        Some(dir) => vec![PathBuf::from(dir)],
        None => newest_first("/usr/lib/postgresql", "bin").into_iter().chain(search_path()).collect(),
    };
    let initdb = first("a PostgreSQL server (initdb, postgres)", &["initdb", "postgres"], &dirs, SETUP)?;
    Ok(PostgresPrograms { postgres: initdb.with_file_name("postgres"), initdb })
}

pub(crate) fn java() -> Result<PathBuf, Missing> {
    let home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin"));
    let dirs: Vec<PathBuf> =
        home.into_iter().chain(search_path()).chain(newest_first("/usr/lib/jvm", "bin")).collect();
    first("a Java runtime (java)", &["java"], &dirs, SETUP)
}

pub(crate) fn zookeeper_classpath() -> Result<OsString, Missing> {
    let classpath = env::var_os("ZOOKEEPER_CLASSPATH").unwrap_or_else(|| DEBIAN_CLASSPATH.into());
    // Every entry is a jar, a folder, or `folder/*` for all jars of a folder.
    let exists = |entry: &PathBuf| {
        if entry.ends_with("*") { entry.parent().is_some_and(Path::is_dir) } else { entry.exists() }
    };
    match env::split_paths(&classpath).find(|entry| !exists(entry)) {
        None => Ok(classpath),
        Some(entry) => Err(Missing {
            program: "ZooKeeper".into(),
            looked_in: entry.display().to_string(),
            remedy: format!(
                "{SETUP}, or set ZOOKEEPER_CLASSPATH to its jars, such as `/opt/zookeeper/lib/*`"
            ),
        }),
    }
}

/// Nothing needs it.
pub(crate) fn jaeger() -> Result<PathBuf, Missing> {
    named("LOCKSTOCK_JAEGER", "jaeger", "`scripts/build-jaeger` builds it")
}

/// Nothing needs it.
pub(crate) fn prometheus() -> Result<PathBuf, Missing> {
    named("LOCKSTOCK_PROMETHEUS", "prometheus", "it is a package of that name")
}

/// The program that a variable names, else one on the path.
fn named(variable: &str, name: &str, source: &str) -> Result<PathBuf, Missing> {
    let Some(path) = env::var_os(variable).map(PathBuf::from) else {
        return first(name, &[name], &search_path(), &format!("{source}; {variable} can name it"));
    };
    if is_executable(&path) {
        return Ok(path);
    }
    let looked_in = format!("{}, as {variable} says", path.display());
    Err(Missing { program: name.into(), looked_in, remedy: source.into() })
}

/// Test binaries lie one folder below the others.
fn ours(name: &str) -> Result<PathBuf, Missing> {
    let dirs = if let Some(dir) = env::var_os("LOCKSTOCK_BIN_DIR") {
        vec![PathBuf::from(dir)]
    } else {
        let exe = env::current_exe().unwrap_or_default();
        exe.ancestors().skip(1).take(2).map(Path::to_path_buf).collect()
    };
    first(name, &[name], &dirs, BUILD)
}

/// The first of `programs` from the first folder that has all of them.
fn first(what: &str, programs: &[&str], dirs: &[PathBuf], remedy: &str) -> Result<PathBuf, Missing> {
    let has_all = |dir: &&PathBuf| programs.iter().all(|program| is_executable(&dir.join(program)));
    match dirs.iter().find(has_all) {
        Some(dir) => Ok(dir.join(programs[0])),
        None => Err(Missing {
            program: what.into(),
            looked_in: dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", "),
            remedy: remedy.into(),
        }),
    }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// `PATH`, and the folders that a bare environment may lack.
fn search_path() -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    for usual in ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from) {
        if !dirs.contains(&usual) {
            dirs.push(usual);
        }
    }
    dirs
}

/// `<parent>/<version>/<below>` of every version, the newest first.
fn newest_first(parent: &str, below: &str) -> Vec<PathBuf> {
    let mut versions: Vec<PathBuf> =
        fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    versions.into_iter().map(|version| version.join(below)).collect()
}
