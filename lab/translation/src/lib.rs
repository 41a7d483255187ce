//! Policies of routers in the languages that people write them in: our TOML ([`policy_file`]), Cisco
//! IOS configurations ([`ios`], read), and tc scripts ([`tc_export`], written).

pub mod ios;
pub mod policy_file;
pub mod tc_export;
