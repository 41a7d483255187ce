//! `mta store prepare`: the tables of a queue that is in a PostgreSQL database.

use crate::command::output::{load, print, print_error};
use crate::command::{DONE, FAILED, WRONG};
use crate::config::section::store::engine::StoreEngine;
use crate::driver::database_options;
use bytes::Bytes;
use std::path::Path;

/// The environment variable with the password of the role that owns the tables.
pub(super) const OWNER_PASSWORD: &str = "MTA_OWNER_PASSWORD";

/// Makes the tables, or brings them to this release's version, and lets the role of the configuration use them.
pub(super) fn prepare(config: &Path, owner_url: &str) -> u8 {
    let Some(site) = load(config) else { return WRONG };
    let StoreEngine::Postgres(database) = &site.engine else {
        print_error(
            "the queue is in the data directory: [store] with engine = \"postgres\" names no database",
        );
        return WRONG;
    };
    let role = match postgres_store::role(&database.url) {
        Ok(Some(role)) => role,
        Ok(None) => {
            print_error("url of [store] names no role: write user=mta_run into it");
            return WRONG;
        }
        Err(error) => {
            print_error(&error.to_string());
            return WRONG;
        }
    };
    let password = std::env::var(OWNER_PASSWORD).ok().map(Bytes::from);
    let options = postgres_store::Options { password, ..database_options(database) };
    match postgres_store::prepare(owner_url, &role, &options) {
        Ok(prepared) if prepared.before == prepared.now => {
            print(&format!(
                "the tables have version {} already; {role} may use them\n",
                prepared.now
            ));
            DONE
        }
        Ok(prepared) => {
            let before = match prepared.before {
                0 => "made".to_owned(),
                before => format!("brought from version {before}"),
            };
            print(&format!(
                "the tables are {before} to version {}; {role} may use them\n",
                prepared.now
            ));
            DONE
        }
        Err(error) => {
            print_error(&error.to_string());
            if matches!(error, store::StoreError::Denied { .. }) {
                print_error(&format!(
                    "here it is the account of --owner-url; its password is taken from {OWNER_PASSWORD}"
                ));
            }
            FAILED
        }
    }
}
