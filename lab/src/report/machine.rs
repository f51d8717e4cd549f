//! What a figure depends on: versions and machine. What cannot be read is said to be unknown, never left out.

use super::model::Machine;

/// The machine we run on.
pub fn machine() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    Machine {
        cpus: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        memory_mib: memory_kib(&read("/proc/meminfo")).unwrap_or(0) / 1024,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        load_1m: first_number(&read("/proc/loadavg")).unwrap_or(0.0),
    }
}

fn memory_kib(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The version in the reply of ZooKeeper's `srvr`: `Zookeeper version: 3.8.0-1, built on …`.
pub fn zookeeper_version(srvr: &str) -> Option<String> {
    let rest = srvr.lines().find_map(|line| line.strip_prefix("Zookeeper version:"))?.trim();
    Some(rest.split([',', '-', ' ']).next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{memory_kib, zookeeper_version};

    #[test]
    fn reads_what_the_kernel_and_zookeeper_say() {
        assert_eq!(memory_kib("MemTotal:       16000000 kB\nMemFree: 1 kB"), Some(16_000_000));
        let srvr =
            "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2023-04-06\nLatency min/avg/max: 0/0/0";
        assert_eq!(zookeeper_version(srvr).as_deref(), Some("3.8.0"));
        assert_eq!(zookeeper_version("This server is currently not serving requests"), None);
    }
}
