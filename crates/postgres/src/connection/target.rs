//! Where the database is: the url, taken apart.

use crate::connection::tls;
use crate::options::Options;
use std::path::PathBuf;
use std::time::Duration;
use store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A server and a database, with what a connection needs.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) tls: Option<MakeRustlsConnect>,
    pub(crate) schema: String,
    /// Its hosts and ports, for people.
    pub(crate) host: String,
    pub(crate) time_limit: Duration,
    pub(crate) connect_limit: Duration,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("host", &self.host).field("schema", &self.schema).finish()
    }
}

/// Octets of the longest name of a schema: it is part of longer names.
const MAX_SCHEMA: usize = 48;

/// What of a url is not for the client library.
#[derive(Debug, Default, PartialEq, Eq)]
struct Security {
    mode: Option<String>,
    roots: Option<PathBuf>,
}

impl Target {
    /// Takes a url (`postgresql://…`) or words (`host=… dbname=…`) apart. The password of the options counts
    /// before that of the url.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`]: it is not one, or the root certificates are not there.
    pub(crate) fn parse(url: &str, options: &Options) -> Result<Target, StoreError> {
        let Options { schema, time_limit, connect_limit, .. } = options;
        let (time_limit, connect_limit) = (*time_limit, *connect_limit);
        let refused =
            |host: &str, reason: String| StoreError::BadUrl { host: host.to_owned(), reason };
        let (rest, security) = split(url);
        // The library's error does not repeat the url, which may have a password.
        let mut config: Config =
            rest.parse().map_err(|e: tokio_postgres::Error| refused("?", words(&e)))?;
        let host = hosts(&config);
        if schema.is_empty() || schema.len() > MAX_SCHEMA {
            let reason = format!("the name of a schema has 1 to {MAX_SCHEMA} octets");
            return Err(refused(&host, reason));
        }
        let (mode, checks) = match security.mode.as_deref() {
            Some("disable") => (SslMode::Disable, false),
            None | Some("allow" | "prefer") => (SslMode::Prefer, false),
            Some("require") => (SslMode::Require, false),
            Some("verify-ca" | "verify-full") => (SslMode::Require, true),
            Some(other) => return Err(refused(&host, format!("sslmode={other} is not known"))),
        };
        if checks && security.roots.is_none() {
            let reason = "to check the server's certificate, name a file of root certificates \
                          (sslrootcert=…)";
            return Err(refused(&host, reason.to_owned()));
        }
        let client = match mode {
            SslMode::Disable => None,
            _ => Some(tls::client(security.roots.as_deref()).map_err(|e| refused(&host, e))?),
        };
        config
            .ssl_mode(mode)
            // Of several hosts, the one that is not a standby.
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .connect_timeout(connect_limit)
            .tcp_user_timeout(time_limit)
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
        if config.get_application_name().is_none() {
            config.application_name("mta");
        }
        if let Some(password) = &options.password {
            config.password(password);
        }
        let (tls, schema) = (client.map(MakeRustlsConnect::new), schema.clone());
        Ok(Target { config, tls, schema, host, time_limit, connect_limit })
    }

    /// A configuration for each server.
    pub(crate) fn each_host(&self) -> Vec<Config> {
        let hosts = self.config.get_hosts();
        if hosts.len() < 2 {
            return vec![self.config.clone()];
        }
        let one = |n: usize, host: &Host| {
            let all = &self.config;
            let mut config = Config::new();
            match host {
                Host::Tcp(name) => config.host(name),
                Host::Unix(path) => config.host_path(path),
            };
            if let Some(port) = all.get_ports().get(n).or(all.get_ports().first()) {
                config.port(*port);
            }
            if let Some(user) = all.get_user() {
                config.user(user);
            }
            if let Some(password) = all.get_password() {
                config.password(password);
            }
            if let Some(name) = all.get_dbname() {
                config.dbname(name);
            }
            if let Some(options) = all.get_options() {
                config.options(options);
            }
            if let Some(name) = all.get_application_name() {
                config.application_name(name);
            }
            config
                .ssl_mode(all.get_ssl_mode())
                .channel_binding(all.get_channel_binding())
                .target_session_attrs(all.get_target_session_attrs())
                .connect_timeout(self.connect_limit)
                .tcp_user_timeout(self.time_limit)
                .keepalives_idle(Duration::from_secs(10))
                .keepalives_interval(Duration::from_secs(5))
                .keepalives_retries(3);
            config
        };
        hosts.iter().enumerate().map(|(n, host)| one(n, host)).collect()
    }

    /// A configuration for each server, whatever it is, with its address and port.
    pub(crate) fn each_by_name(&self) -> Vec<(String, Config)> {
        let any = |mut config: Config| {
            config.target_session_attrs(TargetSessionAttrs::Any);
            (hosts(&config), config)
        };
        self.each_host().into_iter().map(any).collect()
    }

    /// The schema as an SQL identifier.
    pub(crate) fn quoted_schema(&self) -> String {
        quoted(&self.schema)
    }
}

/// The role that a url names.
///
/// # Errors
/// [`StoreError::BadUrl`]: it is not a url.
pub fn role(url: &str) -> Result<Option<String>, StoreError> {
    Ok(Target::parse(url, &Options::default())?.config.get_user().map(str::to_owned))
}

/// A name as an SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An error of the client library, with its cause.
pub(crate) fn words(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn hosts(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(5432);
    let all = config.get_hosts().iter().enumerate().map(|(n, host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(n)),
        Host::Unix(path) => format!("{}:{}", path.display(), port(n)),
    });
    let all: Vec<String> = all.collect();
    if all.is_empty() { "?".to_owned() } else { all.join(",") }
}

/// The url without `sslmode` and `sslrootcert`, of which the library does not know all.
fn split(url: &str) -> (String, Security) {
    let mut security = Security::default();
    let mut take = |word: &str| match word.split_once('=') {
        Some(("sslmode", mode)) => {
            security.mode = Some(mode.to_owned());
            false
        }
        Some(("sslrootcert", path)) => {
            security.roots = Some(PathBuf::from(path));
            false
        }
        _ => true,
    };
    let is_url = url.starts_with("postgresql://") || url.starts_with("postgres://");
    let rest = match (is_url, url.split_once('?')) {
        (true, None) => url.to_owned(),
        (true, Some((front, query))) => {
            let kept: Vec<&str> = query.split('&').filter(|word| take(word)).collect();
            if kept.is_empty() { front.to_owned() } else { format!("{front}?{}", kept.join("&")) }
        }
        (false, _) => url.split(' ').filter(|word| take(word)).collect::<Vec<_>>().join(" "),
    };
    (rest, security)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Target, String> {
        Target::parse(url, &Options::default()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_url_names_the_place_and_its_safety() {
        let (rest, security) = split("postgresql://a@h/d?sslmode=verify-full&sslrootcert=/r&x=1");
        assert_eq!(rest, "postgresql://a@h/d?x=1");
        assert_eq!(security.mode.as_deref(), Some("verify-full"));
        assert_eq!(security.roots, Some(PathBuf::from("/r")));
        assert_eq!(split("host=h sslmode=disable dbname=d").0, "host=h dbname=d");
        let target = parse("postgresql://a:secret@one,two:5433/d?sslmode=require").unwrap();
        assert_eq!(target.host, "one:5432,two:5433");
        assert!(target.tls.is_some() && !format!("{target:?}").contains("secret"));
        assert!(parse("postgresql://h/d?sslmode=disable").unwrap().tls.is_none());
        assert_eq!(role("host=h user=runs").unwrap().as_deref(), Some("runs"));
        let secret = Options { password: Some("secret".into()), ..Options::default() };
        assert!(!format!("{secret:?}").contains("secret"));
    }

    #[test]
    fn what_cannot_be_done_is_refused_without_the_password() {
        for (url, expected) in [
            ("postgresql://a:secret@h/d?sslmode=verify-full", "root certificates"),
            ("postgresql://a:secret@h/d?sslmode=verify-full&sslrootcert=/nowhere", "/nowhere"),
            ("postgresql://a:secret@h/d?sslmode=perhaps", "perhaps"),
            ("postgresql://a:secret@h:port/d", ""),
        ] {
            let error = parse(url).unwrap_err();
            assert!(error.contains(expected) && !error.contains("secret"), "{error}");
        }
    }
}
