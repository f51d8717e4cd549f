//! Rules of the whole repository that no compiler checks.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Two versions of these in one program lose trace context, or sessions, without a word. `deny.toml` says it too.
const ONE_VERSION: [&str; 4] = ["opentelemetry", "opentelemetry_sdk", "tracing", "zookeeper-client"];
const LINES_MAX: usize = 400;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository")
}

/// The files that git tracks.
fn tracked() -> Vec<PathBuf> {
    let listed = Command::new("git").arg("-C").arg(root()).args(["ls-files", "-z"]).output();
    let listed = listed.expect("git is installed");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).expect("plain names");
    // A file that is being removed is still listed.
    names.split_terminator('\0').map(|name| root().join(name)).filter(|path| path.is_file()).collect()
}

#[test]
fn no_crate_that_must_be_one_is_there_twice() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock is tracked");
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            line.strip_prefix(" = \"")?.strip_suffix('"')
        };
        let (name, version) = (value("name").expect("a name"), value("version").expect("a version"));
        versions.entry(name).or_default().push(version);
    }
    for name in ONE_VERSION {
        let found = versions.get(name).map_or(&[][..], Vec::as_slice);
        assert_eq!(found.len(), 1, "{name} is there in the versions {found:?}");
    }
}

#[test]
fn no_source_file_is_too_long() {
    let sources = tracked().into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    let long: Vec<(usize, PathBuf)> = sources
        .map(|path| (fs::read_to_string(&path).expect("a text").lines().count(), path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .collect();
    assert!(long.is_empty(), "one idea a file, at most {LINES_MAX} lines: {long:?}");
}

#[test]
fn no_file_names_a_folder_of_somebodys_machine() {
    // Put together here, so that this file is not the one that is found.
    let private = [
        format!("/{}/", "home"),
        format!("/{}/", "root"),
        format!("/{}/", "Users"),
        root().display().to_string(),
    ];
    let mut found = Vec::new();
    for path in tracked() {
        let text = String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned();
        found.extend(
            private
                .iter()
                .filter(|folder| text.contains(*folder))
                .map(|folder| (path.clone(), folder.clone())),
        );
    }
    assert!(found.is_empty(), "{found:?}");
}
