//! A user of a message store in this process, who types commands.
#![allow(dead_code, reason = "each test uses a part of it")]

use crate::common::TestStore;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tokio::runtime::Runtime;

/// A store, and a user of it with a profile.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) server: TestStore,
    _runtime: Runtime,
}

impl Place {
    pub(crate) fn new() -> Place {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(TestStore::start());
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("jones.password", "vesuvio\n");
        let address = &server.address;
        write(
            "config.toml",
            &format!(
                "[profile.jones]\nmta = \"127.0.0.1:1\"\nstore = \"{address}\"\n\
                 user = \"/C=XX/ADMD= /PRMD=alpha/S=Jones\"\npassword = {{ file = \"jones.password\" }}\ninbox = \"inbox\"\n"
            ),
        );
        Place { dir, server, _runtime: runtime }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xuxa"));
        command.arg("--config").arg(self.path("config.toml")).args(args);
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Standard output of a command that succeeds.
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let text = self.done(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap()
    }

    /// Numbers of the entries in a listing.
    pub(crate) fn numbers(&self, args: &[&str]) -> Vec<u64> {
        let listing = self.json(args);
        let entries = listing["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["number"].as_u64().unwrap()).collect()
    }

    /// Fails with this code and reason.
    pub(crate) fn fails(&self, args: &[&str], code: i32, reason: &str) {
        let output = self.run(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(reason), "{args:?}: {error}");
        for line in error.lines() {
            let parts: Vec<&str> = line.split(": ").collect();
            let is_twice = parts.windows(2).any(|two| two[0] == two[1]);
            assert!(!is_twice, "a cause is there twice: {line}");
        }
    }
}
