//! `[metrics]`: the listener for Prometheus.

use crate::problem::Problems;
use crate::section::listen::Listeners;
use crate::tree::Section;
use crate::value;
use std::net::SocketAddr;
use toml::Spanned;

/// Reads the section; without it there is no listener. The listener has no passwords, so only
/// clients on this machine may reach it.
pub(crate) fn read(
    top: &mut Section<'_>,
    problems: &mut Problems,
    listeners: &Listeners<'_>,
) -> Option<SocketAddr> {
    let mut section = top.table(problems, "metrics")?;
    let remedy = "write listen = \"127.0.0.1:9464\"";
    let listen = section.required(problems, "listen", remedy, &value::socket);
    section.finish(problems);
    let listen = listen?;
    if !listen.get_ref().ip().is_loopback() {
        let message = format!("metrics on {}, which others can reach", listen.get_ref());
        let remedy = "the listener asks nobody who he is: write a loopback address, and let a proxy \
                      that does serve others (docs/security.md)";
        problems.error(listen.span(), message, "not a loopback address", remedy);
    }
    if let Some((label, place)) = listeners.taken(*listen.get_ref()) {
        let message = format!("{} is listened on twice", listen.get_ref());
        problems.error(listen.span(), message, "again", remedy);
        problems.see_also(place, format!("taken by {label}"));
    }
    Some(Spanned::into_inner(listen))
}
