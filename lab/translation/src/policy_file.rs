//! The policy of a router in a TOML file.

use router::policy::{KeyFault, RouterPolicy};
use std::path::Path;
use text::toml_file::{Mistake, TomlFile};

/// A policy, with the text that it was read from.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    inner: TomlFile<RouterPolicy>,
}

impl PolicyFile {
    /// Reads a file of up to 4 MiB.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or is not a policy; with the place.
    pub fn read(path: &Path) -> Result<PolicyFile, Mistake> {
        Ok(PolicyFile { inner: TomlFile::read(path)? })
    }

    /// Reads a policy from text; `file` is its name in messages.
    ///
    /// # Errors
    /// The text is not TOML, or not a policy; with the place.
    pub fn parse(file: &str, text: &str) -> Result<PolicyFile, Mistake> {
        Ok(PolicyFile { inner: TomlFile::parse(file, text)? })
    }

    /// The policy.
    pub fn policy(&self) -> &RouterPolicy {
        &self.inner.value
    }

    /// The policy, without the text.
    pub fn into_policy(self) -> RouterPolicy {
        self.inner.value
    }

    /// The fault that a router reported when it was built from the policy, at its place in the
    /// file.
    pub fn mistake(&self, wrong: &KeyFault) -> Mistake {
        self.inner.mistake_at(&wrong.path, &wrong.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use text::toml_file::read_bounded;

    fn refused(text: &str) -> Mistake {
        PolicyFile::parse("p.toml", text).unwrap_err()
    }

    #[test]
    fn mistakes_have_their_line_and_column() {
        // (text, line, column, part of the message)
        let cases = [
            ("about = 'x'\ninterface = 1\n", 2, 1, "unknown field `interface`"),
            ("[classes.ef]\nmatch = [{ dscp = ['EF'], sorce = '10.0.0.1' }]\n", 2, 27, "`sorce`"),
            ("[classes.ef]\nmatch = [{ dscp = ['EF', 'EG'] }]\n", 2, 26, "\"EG\""),
            (
                "[chains]\na = [\n  { kind = 'mark', dscp = 'EF', clas = 'x' },\n]\n",
                3,
                33,
                "`clas`",
            ),
            ("[chains]\na = [\n  { kind = 'mrk', dscp = 'EF' },\n]\n", 3, 12, "`mrk`"),
            (
                "[queueings.q]\nkind = 'shaper'\nburst = 1\nrate = '1Mbits'\n[queueings.q.child]\nkind = 'fifo'\n",
                4,
                8,
                "\"1Mbits\"",
            ),
            (
                "[queueings.q]\nkind = 'priority'\n[[queueings.q.branches]]\nshare = { prcent = 5 }\n",
                4,
                11,
                "`prcent`",
            ),
            // The first `limit` is valid at its place.
            (
                "[queueings.q]\nkind = 'priority'\nbranches = [{ queueing = { kind = 'fifo', limit = {} } }]\nlimit = {}\n",
                4,
                1,
                "`limit`",
            ),
            ("a = [", 1, 6, ""),
        ];
        for (text, line, column, what) in cases {
            let mistake = refused(text);
            assert_eq!((mistake.line, mistake.column), (line, column), "{mistake}");
            assert!(mistake.message.contains(what), "{mistake}");
            assert!(mistake.to_string().starts_with(&format!("p.toml:{line}:{column}: ")));
        }
    }

    #[test]
    fn a_mistake_is_shown_with_its_line() {
        let shown = refused("[classes.ef]\nmatch = [{ dscpp = ['EF'] }]\n").render(false);
        assert!(shown.contains("p.toml:2:12"), "{shown}");
        assert!(shown.contains("match = [{ dscpp"), "{shown}");
    }

    #[test]
    fn a_router_s_complaint_is_given_its_place() {
        let text = "[queueings.q]\nkind = 'priority'\nbranches = [\n  {},\n  { class = 'x' },\n]\n";
        let file = PolicyFile::parse("p.toml", text).unwrap();
        let at = |path: &str| {
            let mistake = file.mistake(&KeyFault::at(path, "no such class"));
            (mistake.line, mistake.column)
        };
        assert_eq!(at("queueings.q.branches[1].class"), (5, 5));
        assert_eq!(at("queueings.q.branches[1].queueing.limit"), (5, 3));
        assert_eq!(at("queueings.q.branches[0]"), (4, 3));
        assert_eq!(at("queueings.other"), (1, 2));
        assert_eq!(at("nothing"), (0, 0), "it has no place");
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [Path::new("/dev/zero"), &pipe, directory.path()] {
            let mistake = PolicyFile::read(path).unwrap_err();
            assert!(mistake.message.contains("no regular file"), "{mistake}");
        }
        // Files of /proc state a size of 0 octets.
        let status = read_bounded(Path::new("/proc/self/status"), 10);
        assert_eq!(status, Err("more than 10 octets long".to_owned()));
        let long = directory.path().join("long.toml");
        let file = std::fs::File::create(&long).unwrap();
        file.set_len((4 << 20) + 1).unwrap();
        let mistake = PolicyFile::read(&long).unwrap_err();
        assert!(mistake.message.contains("more than 4194304 octets"), "{mistake}");
        file.set_len(0).unwrap();
        assert!(PolicyFile::read(&long).is_ok());
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let mistake = PolicyFile::read(Path::new("/nonexistent/p.toml")).unwrap_err();
        assert!(mistake.to_string().starts_with("/nonexistent/p.toml: "), "{mistake}");
        assert_eq!(mistake.render(false), mistake.to_string());
    }
}
