//! ACSE on presentation, or neither: what RTSE and ROSE stand on.

use crate::acse::{self, Acse};
use crate::api::{Config, Role};
use crate::presentation::Presentation;
use crate::presentation::service::{self as presentation, Contexts};
use crate::session::service as session;
use crate::x410::{self, Direct};

/// The two machines, and what is there instead of them in X.410 mode.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    presentation: Presentation,
    acse: Acse,
    direct: Option<Direct>,
    /// That of a responder: it takes up a peer that does not ask for normal mode.
    offered: Option<Direct>,
}

/// Their indications to RTSE or ROSE.
#[derive(Clone, Debug)]
pub(crate) enum Above {
    Association(acse::Indication),
    Presentation(presentation::Indication),
}

impl Below {
    pub(crate) fn new(config: &Config, role: Role) -> Below {
        let direct = config.mode.is_x410().then(|| Direct::new(config, role));
        let (direct, offered) = match role {
            Role::Initiator => (direct, None),
            Role::Responder => (None, direct),
        };
        Below {
            presentation: Presentation::new(config, role),
            acse: Acse::new(config, role),
            direct,
            offered,
        }
    }

    /// The two machines in these states.
    #[cfg(test)]
    pub(crate) fn at(
        config: &Config,
        role: Role,
        presentation: crate::presentation::table::State,
        acse: acse::table::State,
    ) -> Below {
        Below {
            presentation: Presentation::at(config, role, presentation),
            acse: Acse::at(config, role, acse),
            ..Below::new(config, role)
        }
    }

    /// What the machines have for the session, and for RTSE or ROSE of ACSE, for tests.
    #[cfg(test)]
    pub(crate) fn outputs(&self) -> String {
        use crate::table::shown;
        format!("{} {}", shown(&self.presentation.down), shown(&self.acse.up))
    }

    /// Drops what the presentation has for the session, for tests.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        self.presentation.down.clear();
    }

    /// The defined context set.
    pub(crate) fn contexts(&self) -> &Contexts {
        match &self.direct {
            Some(direct) => direct.contexts(),
            None => self.presentation.contexts(),
        }
    }

    /// Whether ACSE and presentation are absent: in X.410 mode.
    pub(crate) fn is_x410(&self) -> bool {
        self.direct.is_some()
    }

    /// An A- primitive.
    pub(crate) fn associate(&mut self, request: acse::Request) {
        match &mut self.direct {
            Some(direct) => direct.associate(request),
            None => self.acse.request(&mut self.presentation, request),
        }
    }

    /// A P- primitive.
    pub(crate) fn present(&mut self, request: presentation::Request) {
        match &mut self.direct {
            Some(direct) => direct.present(request),
            None => self.presentation.request(request),
        }
    }

    /// A P- primitive that is an S- primitive but for its name.
    pub(crate) fn pass(&mut self, request: session::Request) {
        self.present(presentation::Request::Pass(request));
    }

    /// Ends the association for a reason that lies outside the layers here: the peer gets an ABRT
    /// if there is a connection to carry it.
    pub(super) fn fail(&mut self, detail: String) {
        match &mut self.direct {
            Some(direct) => direct.fail(detail),
            None => self.acse.fail(&mut self.presentation, detail),
        }
    }

    /// An S- indication or confirm.
    pub(super) fn indication(&mut self, indication: session::Indication) {
        if let session::Indication::Connect(connect) = &indication
            && !x410::asks_for_normal_mode(&connect.user_data)
            && let Some(direct) = self.offered.take()
        {
            self.direct = Some(direct);
        }
        match &mut self.direct {
            Some(direct) => direct.indication(indication),
            None => self.presentation.indication(indication),
        }
    }

    /// The next thing for RTSE or ROSE.
    pub(super) fn poll_up(&mut self) -> Option<Above> {
        use presentation::Indication as P;
        if let Some(direct) = &mut self.direct {
            return direct.poll_up();
        }
        loop {
            if let Some(indication) = self.acse.up.pop_front() {
                return Some(Above::Association(indication));
            }
            match self.presentation.up.pop_front()? {
                indication @ (P::ValueStart { .. }
                | P::ValueData(_)
                | P::ValueEnd
                | P::PleaseTokens(_)
                | P::Pass(_)) => return Some(Above::Presentation(indication)),
                indication => self.acse.indication(&mut self.presentation, indication),
            }
        }
    }

    /// Octets held between calls.
    pub(super) fn held(&self) -> usize {
        self.presentation.held()
    }

    /// Most octets [`Below::held`] ever gives.
    pub(super) const MAX_HELD: usize = Presentation::MAX_HELD;

    /// The state of ACSE, for tests.
    #[cfg(test)]
    pub(super) fn state(&self) -> String {
        self.acse.state()
    }

    /// The next S- request.
    pub(super) fn poll_down(&mut self) -> Option<session::Request> {
        match &mut self.direct {
            Some(direct) => direct.down.pop_front(),
            None => self.presentation.down.pop_front(),
        }
    }
}
