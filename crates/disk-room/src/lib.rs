//! What the system grants on the disk of a data directory: rights, and quotas of users and groups.

pub mod data_dir;
pub mod quota;
