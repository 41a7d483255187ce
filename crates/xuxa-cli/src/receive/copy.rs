//! Which copy of a message a delivery is.
//!
//! A user may be entitled to several copies of one message: named directly, by lists, and by redirections
//! (X.411 14.3). They have one MTS identifier and one content. So a delivery that the MTA repeats is known by
//! the histories too.

use crate::show;
use p1::extension::Extensions;
use p1::history::{dl_expansion_history, redirection_history};
use p1::names::ORName;
use sha2::{Digest as _, Sha256};

/// Octets of the names of lists and redirections; of longer ones there is a digest.
const MAX_NAMES: usize = 500;

/// The name of a copy in the inbox: its MTS identifier, and by whose lists and redirections it came. A
/// history that cannot be read counts as none.
pub(super) fn copy_of(identifier: &str, extensions: &Extensions) -> String {
    let lists = dl_expansion_history(extensions).unwrap_or_default();
    let redirections = redirection_history(extensions).unwrap_or_default();
    let mut name = identifier.to_owned();
    let mut add = |word: &str, by: &ORName| name.push_str(&format!(" {word} {}", by.address));
    lists.iter().for_each(|list| add("by", &list.name));
    redirections.iter().for_each(|redirection| add("for", &redirection.intended));
    match name.len() > identifier.len() + MAX_NAMES {
        true => format!("{identifier} by {}", show::hex(&Sha256::digest(&name))),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Utc;
    use p1::history::{
        Expansion, Redirection, RedirectionReason, add_dl_expansion, add_redirection,
    };
    use p1::time::Time;

    #[test]
    fn copies_by_lists_and_redirections_are_not_the_same() {
        let name = |text: &str| ORName::from(text.parse::<p1::ORAddress>().unwrap());
        let time = |seconds: u64| Time::from(Utc((1_767_323_045 + seconds) * 1_000_000));
        let by = |list: &str, at| {
            let mut extensions = Extensions::default();
            let expansion = Expansion { name: name(list), time: time(at) };
            add_dl_expansion(&mut extensions, expansion).unwrap();
            copy_of("[/C=XX/;1]", &extensions)
        };
        let direct = copy_of("[/C=XX/;1]", &Extensions::default());
        assert_eq!(direct, "[/C=XX/;1]");
        let staff = by("C=XX;ADMD=NET;CN=staff", 0);
        assert_eq!(staff, by("C=XX;ADMD=NET;CN=staff", 9), "times do not count");
        assert!(staff != direct && staff != by("C=XX;ADMD=NET;CN=others", 0));
        let mut extensions = Extensions::default();
        let redirection = Redirection {
            intended: name("C=XX;ADMD=NET;S=Jones"),
            time: time(0),
            reason: RedirectionReason::RECIPIENT_ASSIGNED,
        };
        add_redirection(&mut extensions, redirection).unwrap();
        assert_ne!(copy_of("[/C=XX/;1]", &extensions), direct);
        for n in 0..512u64 {
            let expansion =
                Expansion { name: name(&format!("C=XX;ADMD=NET;CN=l{n}")), time: time(n) };
            add_dl_expansion(&mut extensions, expansion).unwrap();
        }
        let long = copy_of("[/C=XX/;1]", &extensions);
        assert!(long.starts_with("[/C=XX/;1] by ") && long.len() < 100, "{long}");
    }
}
