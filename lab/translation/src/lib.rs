//! Router policies in the languages in which people write them: TOML ([`policy_file`]), Cisco IOS
//! configurations ([`ios`]), and tc scripts ([`tc_export`], written only).

pub mod ios;
pub mod policy_file;
pub mod tc_export;
