//! What a server is to be like.

use crate::programs::Programs;
use std::time::Duration;

/// The longest life of a server, whatever its owner does: an hour.
const LIFETIME: Duration = Duration::from_secs(3600);

/// What a server is to be like. The default: no password, no TLS, fsync on, an hour of life.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) programs: Option<Programs>,
    pub(crate) name: String,
    pub(crate) password: Option<String>,
    pub(crate) tls: bool,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) disk: Option<u32>,
    pub(crate) lifetime: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            programs: None,
            name: "s0".to_owned(),
            password: None,
            tls: false,
            settings: Vec::new(),
            disk: None,
            lifetime: LIFETIME,
        }
    }
}

impl Options {
    /// The default.
    pub fn new() -> Options {
        Options::default()
    }

    /// With these programs instead of those that [`Programs::find`] finds.
    #[must_use]
    pub fn programs(mut self, programs: Programs) -> Options {
        self.programs = Some(programs);
        self
    }

    /// With this name, as `cluster_name` and in replication, instead of `s0`.
    #[must_use]
    pub fn name(mut self, name: &str) -> Options {
        self.name = name.to_owned();
        self
    }

    /// Every role that comes over TCP has this password (SCRAM) instead of none.
    #[must_use]
    pub fn password(mut self, password: &str) -> Options {
        self.password = Some(password.to_owned());
        self
    }

    /// Who comes over TCP has to use TLS. The certificate is of an authority made for this server;
    /// takes the program `openssl`.
    #[must_use]
    pub fn tls(mut self) -> Options {
        self.tls = true;
        self
    }

    /// With a setting of `postgresql.conf`, such as `fsync` and `off`.
    #[must_use]
    pub fn set(mut self, setting: &str, value: &str) -> Options {
        self.settings.push((setting.to_owned(), value.to_owned()));
        self
    }

    /// Its data are on a disk of their own (a tmpfs) of this size in MB. Only root may mount one.
    #[must_use]
    pub fn disk(mut self, megabytes: u32) -> Options {
        self.disk = Some(megabytes);
        self
    }

    /// It ends after this time at the latest, instead of an hour.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Options {
        self.lifetime = lifetime;
        self
    }
}
