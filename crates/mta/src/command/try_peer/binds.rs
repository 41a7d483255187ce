//! What a bind has: the name, the form of the credentials, and whether both are those configured. Never the password.

use super::{Subject, peer_of};
use base::ber::Element;
use explain::{Bind, Direction, Explainer};
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, PasswordForm};

/// What is wrong with a bind of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It cannot be read.
    Unreadable,
    /// NULL.
    Unauthenticated,
    /// Its MTA name is not `mta_name`.
    Name,
    /// Its password is not that of `expect`.
    Password,
    /// Strong or protected credentials.
    Form,
}

/// Details of a bind, and what is wrong with it.
pub(super) struct Judged {
    pub(super) details: Vec<String>,
    pub(super) wrong: Option<Wrong>,
}

/// Argument and result have the same two alternatives (X.411 12.1.1).
fn octets_of(bind: &Bind) -> &[u8] {
    match bind {
        Bind::Argument(octets) | Bind::Result(octets) => octets,
    }
}

/// The details of a line's bind.
pub(super) fn details(
    bind: &Bind,
    direction: Direction,
    subject: &Subject<'_>,
    explainer: &Explainer,
) -> Vec<String> {
    match direction {
        Direction::Received => judge(octets_of(bind), subject, explainer).details,
        Direction::Sent => match read(octets_of(bind)) {
            Ok(Some(who)) => vec![
                format!("our name {}", explainer.quoted(who.name.0.as_bytes())),
                format!("credentials: {}, not shown", form(&who.credentials)),
            ],
            _ => Vec::new(),
        },
    }
}

fn read(octets: &[u8]) -> Result<Option<MtaAuthentication>, base::ber::Error> {
    Ok(match Element::parse(octets).and_then(|e| MtaBindArgument::read(&e))? {
        MtaBindArgument::Unauthenticated => None,
        MtaBindArgument::Authenticated(who) => Some(who),
    })
}

fn form(credentials: &Credentials) -> &'static str {
    match credentials {
        Credentials::Simple(password) => match password.form() {
            PasswordForm::Ia5 => "a password as IA5String",
            PasswordForm::Octets => "a password as OCTET STRING",
        },
        Credentials::Strong(_) => "strong",
        Credentials::Protected(_) => "protected",
    }
}

/// Compares a bind of the peer with the configuration.
pub(super) fn judge(octets: &[u8], subject: &Subject<'_>, explainer: &Explainer) -> Judged {
    let who = match read(octets) {
        Ok(Some(who)) => who,
        Ok(None) => {
            let details = vec!["NULL: neither name nor credentials".to_owned()];
            return Judged { details, wrong: Some(Wrong::Unauthenticated) };
        }
        Err(error) => {
            let details = vec![format!("cannot be read: {error}")];
            return Judged { details, wrong: Some(Wrong::Unreadable) };
        }
    };
    let name = explainer.quoted(who.name.0.as_bytes());
    let (peers, configured) = (&subject.site.node.peers, &subject.peer.mta);
    let named = who.name == *configured;
    let whose = peers.iter().find(|peer| !named && peer.mta == who.name);
    let mut details = vec![match (named, whose) {
        (true, _) => format!("their name {name}, as in mta_name"),
        (false, Some(other)) => {
            format!("their name {name}, which is the peer {}'s", peer_of(subject.site, other.id()))
        }
        (false, None) => format!("their name {name}, not {:?} of mta_name", configured.0),
    }];
    details.push(format!("credentials: {}", form(&who.credentials)));
    let mut wrong = (!named).then_some(Wrong::Name);
    match &who.credentials {
        Credentials::Simple(password) => {
            let right = password.matches(&subject.expected.0);
            let is = if right { "is" } else { "is not" };
            details.push(format!("their password {is} the one of expect"));
            wrong = wrong.or((!right).then_some(Wrong::Password));
        }
        Credentials::Strong(_) | Credentials::Protected(_) => {
            wrong = wrong.or(Some(Wrong::Form));
        }
    }
    if who.security_context.is_some() {
        details.push("with a security-context".to_owned());
    }
    Judged { details, wrong }
}
