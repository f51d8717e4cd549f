//! Connect strings and znode paths: checked once, at the edge.
//!
//! Promises that what passes is legal for the server. Does not look at the server: a legal path may not exist.

use crate::error::{ConfigError, PathError};

/// Hosts and chroot of a connect string such as `zoo1:2181,zoo2:2181/lockstock`.
///
/// The chroot is a prefix that we put in front of every path ourselves, so that a chroot that does not exist
/// yet is made like any other directory instead of failing every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectString {
    pub(crate) hosts: String,
    /// Empty, or a path without a slash at its end.
    pub(crate) chroot: String,
}

impl ConnectString {
    pub(crate) fn parse(connect: &str) -> Result<Self, ConfigError> {
        let bad = |reason: &str| ConfigError { connect: connect.to_owned(), reason: reason.to_owned() };
        let (hosts, chroot) = match connect.find('/') {
            Some(slash) => connect.split_at(slash),
            None => (connect, ""),
        };
        if hosts.is_empty() {
            return Err(bad("names no host"));
        }
        for host in hosts.split(',') {
            let Some((name, port)) = host.rsplit_once(':') else {
                return Err(bad("a host has no port; write host:2181"));
            };
            if name.is_empty() || port.parse::<u16>().map_or(true, |port| port == 0) {
                return Err(bad("a host is not of the form name:port"));
            }
        }
        let chroot = chroot.trim_end_matches('/');
        if !chroot.is_empty() {
            validate(chroot).map_err(|error| bad(&format!("the chroot {}", error.reason)))?;
        }
        Ok(Self { hosts: hosts.to_owned(), chroot: chroot.to_owned() })
    }

    /// The path below the chroot; `/` is the chroot itself.
    pub(crate) fn absolute(&self, path: &str) -> String {
        match path {
            "/" if !self.chroot.is_empty() => self.chroot.clone(),
            _ => format!("{}{path}", self.chroot),
        }
    }
}

/// Refuses what the server would refuse, and the root, which cannot be a lock.
pub(crate) fn validate(path: &str) -> Result<(), PathError> {
    let bad = |reason: &'static str| PathError { path: path.to_owned(), reason };
    if !path.starts_with('/') {
        return Err(bad("does not begin with a slash"));
    }
    if path.len() == 1 || path.ends_with('/') {
        return Err(bad("ends with a slash"));
    }
    if path.chars().any(|c| c.is_control() || ('\u{e000}'..='\u{f8ff}').contains(&c) || c >= '\u{fff0}') {
        return Err(bad("has a character that ZooKeeper does not allow"));
    }
    if path[1..].split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Err(bad("has a part that is empty, . or .."));
    }
    if path == "/zookeeper" || path.starts_with("/zookeeper/") {
        return Err(bad("lies in ZooKeeper's own directory"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connect_string_is_hosts_and_an_optional_chroot() {
        let plain = ConnectString::parse("a:1,b:2").unwrap();
        assert_eq!((plain.hosts.as_str(), plain.chroot.as_str()), ("a:1,b:2", ""));
        let rooted = ConnectString::parse("a:1/shop/locks/").unwrap();
        assert_eq!(rooted.chroot, "/shop/locks");
        assert_eq!(rooted.absolute("/x"), "/shop/locks/x");
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused() {
        for bad in ["", "/root", "a", "a:", ":1", "a:0", "a:70000", "a:1,", "a:1/../x", "a:1//x"] {
            assert!(ConnectString::parse(bad).is_err(), "{bad:?} must be refused");
        }
    }

    #[test]
    fn paths_that_the_server_refuses_are_refused_here() {
        for bad in
            ["", "/", "x", "/x/", "/x//y", "/x/./y", "/..", "/x\0", "/x\u{1}", "/zookeeper", "/zookeeper/q"]
        {
            assert!(validate(bad).is_err(), "{bad:?} must be refused");
        }
        for good in ["/x", "/locks/stock:..", "/locks/stock:a.b_c-1", "/zookeepers"] {
            assert!(validate(good).is_ok(), "{good:?} must pass");
        }
    }
}
