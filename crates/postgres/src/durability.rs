//! What the database promises when it confirms a commit: its settings, in sentences.

use crate::connection::client::Connection;
use crate::queue::PostgresStore;
use std::collections::BTreeSet;
use store::StoreError;

/// The settings that decide it, as the server has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `synchronous_commit`.
    pub synchronous_commit: String,
    /// `synchronous_standby_names`.
    pub synchronous_standby_names: String,
    /// `fsync`.
    pub fsync: bool,
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// The standbys that are connected.
    pub standbys: Vec<Standby>,
}

/// A standby that is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standby {
    /// Its name (`application_name`).
    pub name: String,
    /// Whether it has caught up and follows; `None`: the account may not see it.
    pub streams: Option<bool>,
}

/// What they come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// So many servers may be lost at once, whichever, without a loss of what was acknowledged: as long as
    /// the one of the others that has most is promoted. A standby that is not there counts as lost already.
    pub may_be_lost: usize,
    /// So many standbys may be away before commits stop.
    pub may_be_away: usize,
    /// Each a sentence: what is wrong, and what it means.
    pub warnings: Vec<String>,
}

impl Durability {
    /// All of it, in sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let servers = |count: usize| match count {
            0 => "no server".to_owned(),
            1 => "one server".to_owned(),
            count => format!("{count} servers"),
        };
        let mut all = vec![
            format!(
                "{} may be lost without a loss of what was acknowledged",
                servers(self.may_be_lost)
            ),
            format!(
                "{} besides the primary may be away before commits stop",
                servers(self.may_be_away)
            ),
        ];
        all.extend(self.warnings.iter().cloned());
        all
    }
}

/// Which standbys a commit waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Quorum {
    /// So many of them.
    count: usize,
    /// Of these; `*` is any.
    names: Vec<String>,
}

impl Quorum {
    /// Reads `synchronous_standby_names`; `None`: a commit waits for none. Any count of the first and of any
    /// ones is the same here: so many have it.
    fn parse(text: &str) -> Option<Quorum> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let (count, list) = match text.split_once('(') {
            Some((front, list)) if !front.trim_start().starts_with('"') => {
                let count = front.split_whitespace().next_back()?.parse().ok()?;
                (count, list.trim_end().trim_end_matches(')'))
            }
            _ => (1, text),
        };
        let names = list.split(',').map(|name| name.trim().trim_matches('"').to_owned());
        Some(Quorum { count, names: names.filter(|name| !name.is_empty()).collect() })
    }

    /// Names are compared without case.
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(name))
    }
}

impl Settings {
    /// The standbys that a commit may wait for, by name, and for how many of them it does; `*` is any.
    #[must_use]
    pub fn waited_for(&self) -> (usize, Vec<String>) {
        let waits = !matches!(self.synchronous_commit.as_str(), "off" | "local");
        let quorum = Quorum::parse(&self.synchronous_standby_names).filter(|_| waits);
        quorum.map_or_else(Default::default, |quorum| (quorum.count, quorum.names))
    }

    /// What they come to.
    #[must_use]
    pub fn durability(&self) -> Durability {
        let mut found = Durability::default();
        self.warn_of_the_disk(&mut found.warnings);
        let Some(quorum) = Quorum::parse(&self.synchronous_standby_names) else {
            found.warnings.push(
                "synchronous_standby_names is empty: what was acknowledged is on one server only, and \
                 is lost with its disks"
                    .to_owned(),
            );
            return found;
        };
        let waits = match self.synchronous_commit.as_str() {
            "on" | "remote_apply" => true,
            "remote_write" => {
                found.warnings.push(
                    "synchronous_commit is remote_write: a standby has what was acknowledged in memory \
                     only, and loses it in a power failure"
                        .to_owned(),
                );
                true
            }
            other => {
                found.warnings.push(format!(
                    "synchronous_commit is {other}: commits do not wait for the standbys"
                ));
                false
            }
        };
        self.count(&quorum, waits, &mut found);
        found
    }

    fn warn_of_the_disk(&self, warnings: &mut Vec<String>) {
        if self.synchronous_commit == "off" {
            warnings.push(
                "synchronous_commit is off: a crash of the server loses what was acknowledged"
                    .to_owned(),
            );
        }
        if !self.fsync {
            warnings.push("fsync is off: a power failure may destroy the database".to_owned());
        }
        if !self.full_page_writes {
            warnings.push(
                "full_page_writes is off: a power failure may destroy pages of the database"
                    .to_owned(),
            );
        }
    }

    fn count(&self, quorum: &Quorum, waits: bool, found: &mut Durability) {
        // A name counts once: two standbys of one name are one to a quorum of names, and mostly a mistake.
        let mut names = BTreeSet::new();
        for standby in self.standbys.iter().filter(|standby| quorum.has(&standby.name)) {
            if !names.insert(standby.name.to_ascii_lowercase()) {
                found.warnings.push(format!("two standbys have the name {}", standby.name));
            }
            match standby.streams {
                Some(true) => {}
                Some(false) => {
                    found.warnings.push(format!("the standby {} does not follow yet", standby.name));
                }
                None => found.warnings.push(format!(
                    "whether the standby {} follows cannot be seen: grant pg_monitor to the account",
                    standby.name
                )),
            }
        }
        let lacks = |name: &&String| *name != "*" && !names.contains(&name.to_ascii_lowercase());
        for name in quorum.names.iter().filter(lacks) {
            found.warnings.push(format!("the standby {name} is not connected"));
        }
        if !waits {
            return;
        }
        let follow =
            |standby: &&Standby| standby.streams != Some(false) && quorum.has(&standby.name);
        let connected = self.standbys.iter().filter(follow).count();
        found.may_be_lost = quorum.count.min(connected);
        found.may_be_away = connected.saturating_sub(quorum.count);
        if connected < quorum.count {
            found.warnings.push(format!(
                "commits wait for {} standbys and {connected} are there: nothing is acknowledged until \
                 they are",
                quorum.count
            ));
        }
    }
}

impl PostgresStore {
    /// What the database promises with its settings of now.
    ///
    /// # Errors
    /// Those of the server.
    pub fn durability(&self) -> Result<Durability, StoreError> {
        let settings = self
            .control
            .call("reading its settings", |client| async move { read(&client).await })?;
        Ok(settings.durability())
    }
}

pub(crate) async fn read(
    client: &Connection,
) -> Result<Settings, crate::connection::failure::Failure> {
    let sql = "SELECT current_setting('synchronous_commit'), \
               current_setting('synchronous_standby_names'), \
               current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on'";
    let Some(row) = client.row(sql, &[]).await? else { return Ok(Settings::default()) };
    let standbys = client
        .rows(
            "SELECT coalesce(r.application_name, a.application_name, ''), r.state = 'streaming' \
             FROM pg_stat_replication r LEFT JOIN pg_stat_activity a USING (pid)",
            &[],
        )
        .await?;
    let standby = |row: &tokio_postgres::Row| Standby { name: row.get(0), streams: row.get(1) };
    Ok(Settings {
        synchronous_commit: row.get(0),
        synchronous_standby_names: row.get(1),
        fsync: row.get(2),
        full_page_writes: row.get(3),
        standbys: standbys.iter().map(standby).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(commit: &str, names: &str, standbys: &[(&str, Option<bool>)]) -> Settings {
        let standby = |(name, streams): &(&str, Option<bool>)| Standby {
            name: (*name).to_owned(),
            streams: *streams,
        };
        Settings {
            synchronous_commit: commit.to_owned(),
            synchronous_standby_names: names.to_owned(),
            fsync: true,
            full_page_writes: true,
            standbys: standbys.iter().map(standby).collect(),
        }
    }

    #[test]
    fn names_are_read_as_the_server_reads_them() {
        let parsed = |text| Quorum::parse(text).map(|q| (q.count, q.names.join("|")));
        assert_eq!(parsed(" "), None);
        assert_eq!(parsed("s1, \"S 2\""), Some((1, "s1|S 2".to_owned())));
        assert_eq!(parsed("ANY 2 (s1,s2, s3)"), Some((2, "s1|s2|s3".to_owned())));
        assert_eq!(parsed("FIRST 1 (*)"), Some((1, "*".to_owned())));
        assert_eq!(parsed("2 (a, b)"), Some((2, "a|b".to_owned())));
        assert_eq!(parsed("*"), Some((1, "*".to_owned())));
    }

    #[test]
    fn what_is_safe_has_no_warning() {
        let both = [("s1", Some(true)), ("s2", Some(true))];
        for names in ["ANY 1 (s1, s2)", "FIRST 1 (s1, s2)", "*"] {
            let found = settings("on", names, &both).durability();
            assert_eq!(found, Durability { may_be_lost: 1, may_be_away: 1, warnings: vec![] });
        }
        let found = settings("remote_apply", "ANY 2 (S1, s2)", &both).durability();
        assert_eq!((found.may_be_lost, found.may_be_away, found.warnings.len()), (2, 0, 0));
        assert!(found.sentences()[0].starts_with("2 servers may be lost"));
    }

    #[test]
    fn what_is_not_so_is_stated() {
        let one = [("s1", Some(true))];
        for (settings, lost, away, word) in [
            (settings("on", "", &one), 0, 0, "empty"),
            (settings("off", "s1", &one), 0, 0, "off"),
            (settings("local", "s1", &one), 0, 0, "local"),
            (settings("remote_write", "s1", &one), 1, 0, "memory"),
            (settings("on", "ANY 1 (s1, s2)", &one), 1, 0, "s2 is not connected"),
            (settings("on", "ANY 2 (s1, s2)", &one), 1, 0, "nothing is acknowledged"),
            (settings("on", "s1", &[("s1", Some(false))]), 0, 0, "does not follow"),
            (settings("on", "s1", &[("s1", None)]), 1, 0, "pg_monitor"),
            (settings("on", "*", &[("s", Some(true)), ("s", Some(true))]), 1, 1, "two standbys"),
            (Settings { fsync: false, ..settings("on", "*", &one) }, 1, 0, "fsync"),
            (Settings { full_page_writes: false, ..settings("on", "*", &one) }, 1, 0, "pages"),
        ] {
            let found = settings.durability();
            assert_eq!((found.may_be_lost, found.may_be_away), (lost, away), "{settings:?}");
            assert!(found.warnings.iter().any(|text| text.contains(word)), "{found:?}");
        }
    }
}
