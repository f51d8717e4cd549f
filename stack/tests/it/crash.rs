//! Killed with -9, a parent leaves nothing behind: no process, no folder.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{until, victim::Victim};

/// Parent and start time of every process, by id.
fn processes() -> BTreeMap<u32, (u32, String)> {
    let ids = fs::read_dir("/proc").expect("/proc is there").flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let alive = fields[0] != "Z";
        alive.then(|| Some((pid, (fields[1].parse().ok()?, fields[19].to_owned()))))?
    };
    ids.filter_map(read).collect()
}

/// All descendants of a process.
fn family(head: u32) -> BTreeMap<u32, (u32, String)> {
    let all = processes();
    let mut family = BTreeMap::new();
    let mut parents = vec![head];
    while let Some(parent) = parents.pop() {
        for (pid, process) in all.iter().filter(|(_, (of, _))| *of == parent) {
            family.insert(*pid, process.clone());
            parents.push(*pid);
        }
    }
    family
}

fn group(pid: u64) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

#[tokio::test]
async fn nothing_outlives_a_parent_that_is_killed() {
    let victim = Victim::start("stack", &[]);
    let dir = victim.said["dir"].as_str().expect("it says its folder").to_owned();
    let children: Vec<u64> = victim.said["children"]
        .as_array()
        .expect("it says its children")
        .iter()
        .filter_map(serde_json::Value::as_u64)
        .collect();
    let family = family(victim.pid());
    let known = children.iter().all(|pid| family.keys().any(|ours| u64::from(*ours) == *pid));
    assert!(known && children.len() == 3, "{children:?} of {family:?}");
    // Two waiting or computing backends, the watcher's, and the checkpointer, the writers, …
    assert!(family.len() >= 3 + 3 + 4, "PostgreSQL's own processes are among them: {family:?}");
    assert!(Path::new(&dir).join("postgres/data").exists());
    for pid in children {
        assert_eq!(
            group(pid),
            Some(pid),
            "out of reach of the terminal's Ctrl-C: a process group of its own"
        );
    }

    victim.kill();
    until("the whole family is gone", || async {
        let now = processes();
        !family.iter().any(|(pid, (_, started))| now.get(pid).is_some_and(|(_, other)| other == started))
    })
    .await;
    until("its folder is gone", || async { !Path::new(&dir).exists() }).await;
}
