//! What a contender claims: which node, where, in whose name.

use uuid::Uuid;

use crate::recipe::Role;

/// Identity of one contender. Two calls of `acquire` never share one.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) role: Role,
    /// The lock's path as its user gave it.
    pub(crate) path: String,
    /// The directory of its nodes, the chroot included.
    pub(crate) directory: String,
    pub(crate) guid: Uuid,
    /// Name of the node; the server appends the sequence number where the role has one.
    pub(crate) name: String,
}

impl Claim {
    pub(crate) fn new(role: Role, path: &str, directory: &str, instance: Option<&str>) -> Self {
        let guid = Uuid::new_v4();
        Self {
            role,
            path: path.to_owned(),
            directory: directory.to_owned(),
            guid,
            name: role.node_name(guid, instance),
        }
    }

    /// Path of a node in the lock's directory.
    pub(crate) fn node_path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }
}
