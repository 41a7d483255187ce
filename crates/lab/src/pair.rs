//! Two sites that are each other's peer.

use crate::config::{Ends, Link, PeerOf};
use crate::programs::Programs;
use crate::site::{Site, SiteBuilder, password};
use anyhow::Result;
use std::net::SocketAddr;

/// Naples and ACT, as in the files of `config/sites`.
#[derive(Debug)]
pub struct Pair {
    /// The one.
    pub naples: Site,
    /// The other.
    pub act: Site,
}

/// A pair to be.
#[derive(Debug)]
pub struct PairBuilder {
    naples: SiteBuilder,
    act: SiteBuilder,
    link: Link,
    naples_listens: Vec<SocketAddr>,
    act_listens: Vec<SocketAddr>,
    naples_connects: Vec<SocketAddr>,
    wrong_password: bool,
}

impl Pair {
    /// Two sites joined by this link, with one user `OPS` each.
    ///
    /// # Errors
    /// No port is free.
    pub fn builder(link: Link) -> Result<PairBuilder> {
        let (naples, act) = (Site::builder("naples"), Site::builder("act"));
        let ports = |site: &SiteBuilder| -> Result<Vec<SocketAddr>> {
            link.channels.iter().map(|_| site.place().free_port()).collect()
        };
        let (naples_listens, act_listens) = (ports(&naples)?, ports(&act)?);
        let naples_connects = act_listens.clone();
        Ok(PairBuilder {
            naples,
            act,
            link,
            naples_listens,
            act_listens,
            naples_connects,
            wrong_password: false,
        })
    }

    /// Both started.
    ///
    /// # Errors
    /// As [`PairBuilder::build`] and [`Site::start`].
    pub fn start(link: Link) -> Result<Pair> {
        Pair::builder(link)?.start()
    }

    /// Leaves the directories when the pair goes, and says where they are.
    pub fn keep(&mut self) -> [std::path::PathBuf; 2] {
        [self.naples.keep(), self.act.keep()]
    }
}

impl PairBuilder {
    /// With these programs instead of those beside the running one.
    pub fn programs(self, programs: &Programs) -> PairBuilder {
        self.each(|site| site.programs(programs.clone()))
    }

    /// With changes to both sites.
    pub fn each(mut self, mut change: impl FnMut(SiteBuilder) -> SiteBuilder) -> PairBuilder {
        self.naples = change(self.naples);
        self.act = change(self.act);
        self
    }

    /// With changes to Naples.
    pub fn naples(mut self, change: impl FnOnce(SiteBuilder) -> SiteBuilder) -> PairBuilder {
        self.naples = change(self.naples);
        self
    }

    /// With changes to ACT.
    pub fn act(mut self, change: impl FnOnce(SiteBuilder) -> SiteBuilder) -> PairBuilder {
        self.act = change(self.act);
        self
    }

    /// Where ACT listens, for each channel.
    pub fn act_listens(&self) -> &[SocketAddr] {
        &self.act_listens
    }

    /// Naples connects here instead, for each channel: to what stands between the two.
    pub fn naples_connects(mut self, to: Vec<SocketAddr>) -> PairBuilder {
        self.naples_connects = to;
        self
    }

    /// Naples presents a password that ACT does not expect.
    pub fn with_wrong_password(mut self) -> PairBuilder {
        self.wrong_password = true;
        self
    }

    /// Writes all files and adds the users; the daemons are not started.
    ///
    /// # Errors
    /// As [`SiteBuilder::build`].
    pub fn build(self) -> Result<Pair> {
        let (naples, act) = (password("naples-to-act")?, password("act-to-naples")?);
        let expected = if self.wrong_password { password("expected")? } else { naples.clone() };
        let peer = |name: &str, remote: &[SocketAddr], listen: &[SocketAddr]| {
            let pairs = remote.iter().zip(listen);
            let ends = pairs.map(|(&remote, &listen)| Ends { remote, listen }).collect();
            PeerOf { name: name.to_owned(), link: self.link.clone(), ends }
        };
        let of_naples = peer("act", &self.naples_connects, &self.naples_listens);
        let of_act = peer("naples", &self.naples_listens, &self.act_listens);
        Ok(Pair {
            naples: self.naples.peer(of_naples, &naples, &act).build()?,
            act: self.act.peer(of_act, &act, &expected).build()?,
        })
    }

    /// Builds and starts both.
    ///
    /// # Errors
    /// As [`PairBuilder::build`] and [`Site::start`].
    pub fn start(self) -> Result<Pair> {
        let mut pair = self.build()?;
        pair.act.start()?;
        pair.naples.start()?;
        Ok(pair)
    }
}
