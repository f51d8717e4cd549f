//! Rules of the whole repository that no compiler checks.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Two versions of these in one program lose trace context, or sessions, without a word. `deny.toml` says it too.
const ONE_VERSION: [&str; 4] = ["opentelemetry", "opentelemetry_sdk", "tracing", "zookeeper-client"];
const LINES_MAX: usize = 400;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository")
}

/// Everything but what is made here. Without asking git: a source archive has no history.
fn sources() -> Vec<PathBuf> {
    let mut folders = vec![root().to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if ["target", ".git", ".lockstock"].iter().any(|made| path.ends_with(made)) {
                continue;
            }
            let kind = entry.file_type().expect("a kind of file");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    files
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
    let rust = sources().into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    let long: Vec<(usize, PathBuf)> = rust
        .map(|path| (fs::read_to_string(&path).expect("a text").lines().count(), path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .collect();
    assert!(long.is_empty(), "one idea a file, at most {LINES_MAX} lines: {long:?}");
}

#[test]
fn no_file_names_a_folder_of_somebodys_machine() {
    // Put together here, so that this file is not the one that is found.
    let private = ["home", "root", "Users"].map(|folder| format!("/{folder}/"));
    let mut found = Vec::new();
    for path in sources() {
        let text = String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned();
        if private.iter().any(|folder| text.contains(folder)) {
            found.push(path);
        }
    }
    assert!(found.is_empty(), "{private:?} stand in {found:?}");
}

/// The table in docs/guarantees.md and the documentation of the lock library speak of the same awaits.
#[test]
fn what_cancelling_does_is_said_of_every_await_of_the_lock_library() {
    let table = fs::read_to_string(root().join("docs/guarantees.md")).expect("a text");
    let library = root().join("locks/src");
    let mut awaits = 0;
    for path in sources().iter().filter(|path| path.starts_with(&library)) {
        let text = fs::read_to_string(path).expect("a text");
        let parts: Vec<&str> = text.split("    pub async fn ").collect();
        for pair in parts.windows(2) {
            let name = pair[1].split('(').next().unwrap_or_default();
            // The comment above: what follows the last line that is none.
            let above: Vec<&str> =
                pair[0].lines().rev().take_while(|line| line.trim_start().starts_with("///")).collect();
            let said = above.iter().any(|line| line.contains("# Cancel safety"));
            assert!(said, "{name} in {} does not say what cancelling does", path.display());
            assert!(
                table.contains(&format!("::{name}`")),
                "{name} is not in the table of docs/guarantees.md"
            );
            awaits += 1;
        }
    }
    assert!(awaits > 20, "the rule still finds them: {awaits}");
}
