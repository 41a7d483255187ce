//! The files of a server: its data, settings, access rules and certificates.

use crate::options::Options;
use crate::process::{Account, command, give};
use crate::programs::Programs;
use anyhow::{Context as _, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The settings that we write, read behind those of `initdb`.
const SETTINGS: &str = "trial.conf";

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started, or ended with anything but 0; with its last lines.
pub(crate) fn run(mut command: Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("starting {name}"))?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("{name} ended with {}: {}", output.status, printed.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Makes the data directory: empty, of the account, and on a disk of its own if that is asked for.
pub(crate) fn directory(data: &Path, options: &Options, account: Option<Account>) -> Result<()> {
    if !data.exists() {
        fs::create_dir(data).context("the data directory")?;
    }
    if let Some(megabytes) = options.disk {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"]).arg(data);
        run(mount).context("a disk of its own takes root")?;
    }
    fs::set_permissions(data, fs::Permissions::from_mode(0o700))?;
    give(data, account)
}

/// A new database with the superuser `postgres`.
pub(crate) fn initdb(programs: &Programs, data: &Path, account: Option<Account>) -> Result<()> {
    let mut initdb = command(&programs.path("initdb"), account);
    initdb.current_dir(data).arg("-D").arg(data);
    // Small segments: a base backup copies whole ones.
    initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]);
    initdb.args(["--no-sync", "--no-instructions", "--wal-segsize=4"]);
    run(initdb)?;
    let path = data.join("postgresql.conf");
    let mut text = fs::read_to_string(&path)?;
    let _ = writeln!(text, "include '{SETTINGS}'");
    fs::write(&path, text).context("postgresql.conf")
}

/// Writes the settings of a server.
pub(crate) fn settings(data: &Path, settings: &[(String, String)]) -> Result<()> {
    let mut text = String::new();
    for (setting, value) in settings {
        let _ = writeln!(text, "{setting} = '{}'", value.replace('\'', "''"));
    }
    fs::write(data.join(SETTINGS), text).context(SETTINGS)?;
    fs::set_permissions(data.join(SETTINGS), fs::Permissions::from_mode(0o644))?;
    Ok(())
}

/// The settings of a server of these options: small, and ready for standbys.
pub(crate) fn basic_settings(home: &Path, port: u16, options: &Options) -> Vec<(String, String)> {
    let port = port.to_string();
    let socket = home.display().to_string();
    let basic = [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port),
        ("unix_socket_directories", &socket),
        ("cluster_name", &options.name),
        ("shared_buffers", "16MB"),
        ("huge_pages", "off"),
        ("max_connections", "120"),
        ("wal_level", "replica"),
        ("max_wal_senders", "10"),
        // No replication slots: a standby that stays away must not fill the primary's disk.
        ("wal_keep_size", "256MB"),
        // Lets pg_rewind bring an old primary back.
        ("wal_log_hints", "on"),
        ("wal_receiver_timeout", "10s"),
        ("wal_sender_timeout", "10s"),
        ("wal_retrieve_retry_interval", "200ms"),
        ("logging_collector", "off"),
        ("log_line_prefix", "%m [%p] %q%a "),
        ("ssl", if options.tls { "on" } else { "off" }),
    ];
    let mut all: Vec<(String, String)> =
        basic.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    all.extend(options.settings.iter().cloned());
    all
}

/// Who may come from where: over the socket in its directory without a password, over TCP as the
/// options state it.
pub(crate) fn access(data: &Path, options: &Options) -> Result<()> {
    let method = if options.password.is_some() { "scram-sha-256" } else { "trust" };
    let host = if options.tls { "hostssl" } else { "host" };
    let rules = format!(
        "local all all trust\nlocal replication all trust\n\
         {host} all all 127.0.0.1/32 {method}\n{host} replication all 127.0.0.1/32 {method}\n"
    );
    fs::write(data.join("pg_hba.conf"), rules).context("pg_hba.conf")
}

/// Makes an authority and the server's certificate for `localhost` and 127.0.0.1; the path of the
/// authority's certificate.
pub(crate) fn certificates(home: &Path, data: &Path, account: Option<Account>) -> Result<PathBuf> {
    let (root, root_key) = (home.join("root.crt"), home.join("root.key"));
    let (certificate, key) = (data.join("server.crt"), data.join("server.key"));
    let request = || {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args(["-nodes", "-days", "30"]);
        openssl
    };
    let mut authority = request();
    authority.args(["-subj", "/CN=authority of a trial"]).arg("-keyout").arg(&root_key);
    authority.arg("-out").arg(&root);
    run(authority).context("TLS takes the program openssl")?;
    let mut server = request();
    server.args(["-subj", "/CN=localhost"]).arg("-CA").arg(&root).arg("-CAkey").arg(&root_key);
    server.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    // A certificate of an authority is not one of a server.
    server.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    server.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    run(server)?;
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
    give(&key, account)?;
    give(&certificate, account)?;
    Ok(root)
}

/// Copies a running primary into an empty data directory, over its socket.
pub(crate) fn base_backup(
    programs: &Programs,
    (socket, port): (&Path, u16),
    data: &Path,
    account: Option<Account>,
) -> Result<()> {
    let mut backup = command(&programs.path("pg_basebackup"), account);
    backup.current_dir(data).arg("-D").arg(data).arg("-h").arg(socket);
    backup.args(["-p", &port.to_string(), "-U", "postgres", "-X", "stream", "-c", "fast"]);
    backup.arg("--no-sync");
    run(backup)?;
    Ok(())
}

/// Makes the data those of a standby, which follows this primary. What ALTER SYSTEM set on the server
/// that was copied is not for this one.
pub(crate) fn standby(data: &Path, primary: &str, account: Option<Account>) -> Result<()> {
    let quoted = primary.replace('\'', "''");
    let path = data.join("postgresql.auto.conf");
    fs::write(&path, format!("primary_conninfo = '{quoted}'\n"))?;
    give(&path, account)?;
    let signal = data.join("standby.signal");
    fs::write(&signal, "")?;
    give(&signal, account)
}
