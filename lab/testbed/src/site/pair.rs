//! Two sites that are each other's peer.

use crate::net::cable::Cable;
use crate::net::location::SiteLocation;
use crate::process::programs::Programs;
use crate::site::config::{ChannelAddresses, PeerConfig, PeerSettings};
use crate::site::{Site, SiteBuilder, password};
use anyhow::Result;
use std::net::{IpAddr, SocketAddr};

/// The port of the first channel where all ports are free.
const FIRST_CHANNEL: u16 = 5000;

/// Naples and ACT, as in the files of `config/sites`.
#[derive(Debug)]
pub struct Pair {
    /// The site `naples`.
    pub naples: Site,
    /// The site `act`.
    pub act: Site,
}

/// Builds a pair.
#[derive(Debug)]
pub struct PairBuilder {
    naples: SiteBuilder,
    act: SiteBuilder,
    link: PeerSettings,
    naples_listens: Vec<SocketAddr>,
    act_listens: Vec<SocketAddr>,
    naples_connects: Vec<SocketAddr>,
    act_connects: Vec<SocketAddr>,
    also: Option<[IpAddr; 2]>,
    wrong_password: bool,
}

impl Pair {
    /// Two sites with this configuration of each other as peers, each with one user `OPS`.
    ///
    /// # Errors
    /// No port is free.
    pub fn builder(link: PeerSettings) -> Result<PairBuilder> {
        let (naples, act) = (Site::builder("naples"), Site::builder("act"));
        let ports = |site: &SiteBuilder| -> Result<Vec<SocketAddr>> {
            link.channels.iter().map(|_| site.place().free_port()).collect()
        };
        let (naples_listens, act_listens) = (ports(&naples)?, ports(&act)?);
        Ok(PairBuilder::new([naples, act], link, [naples_listens, act_listens]))
    }

    /// Two sites at the ends of a cable, their channels on ports from 5000 on, over IPv4.
    pub fn on_cable(cable: &Cable, link: PeerSettings) -> PairBuilder {
        Pair::at([SiteLocation::at(&cable.naples), SiteLocation::at(&cable.act)], link)
    }

    /// Two sites on loopback addresses of their own, their channels on ports from 5000 on.
    pub fn on_loopback(link: PeerSettings) -> PairBuilder {
        Pair::at([SiteLocation::new(), SiteLocation::new()], link)
    }

    fn at([naples, act]: [SiteLocation; 2], link: PeerSettings) -> PairBuilder {
        let ports = |place: &SiteLocation| -> Vec<SocketAddr> {
            let numbers = (FIRST_CHANNEL..).take(link.channels.len());
            numbers.map(|port| SocketAddr::new(place.ip(), port)).collect()
        };
        let listens = [ports(&naples), ports(&act)];
        let naples = Site::builder("naples").place_at(naples);
        let act = Site::builder("act").place_at(act);
        PairBuilder::new([naples, act], link, listens)
    }

    /// Builds and starts a pair.
    ///
    /// # Errors
    /// As [`PairBuilder::build`] and [`Site::start`].
    pub fn start(link: PeerSettings) -> Result<Pair> {
        Pair::builder(link)?.start()
    }

    /// Keeps the directories after the pair is dropped; returns their paths.
    pub fn keep(&mut self) -> [std::path::PathBuf; 2] {
        [self.naples.keep(), self.act.keep()]
    }
}

impl PairBuilder {
    fn new(
        [naples, act]: [SiteBuilder; 2],
        link: PeerSettings,
        [naples_listens, act_listens]: [Vec<SocketAddr>; 2],
    ) -> PairBuilder {
        PairBuilder {
            naples,
            act,
            link,
            naples_connects: act_listens.clone(),
            act_connects: naples_listens.clone(),
            naples_listens,
            act_listens,
            also: None,
            wrong_password: false,
        }
    }

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

    /// The addresses at which ACT listens, one for each channel.
    pub fn act_listens(&self) -> &[SocketAddr] {
        &self.act_listens
    }

    /// With other addresses that Naples connects to, one for each channel: those of a program between
    /// the two.
    pub fn naples_connects(mut self, to: Vec<SocketAddr>) -> PairBuilder {
        self.naples_connects = to;
        self
    }

    /// With other addresses that ACT connects to, one for each channel.
    pub fn act_connects(mut self, to: Vec<SocketAddr>) -> PairBuilder {
        self.act_connects = to;
        self
    }

    /// Both listen at these addresses instead, Naples at the first, on the same ports, and connect to
    /// them.
    pub fn over(mut self, [naples, act]: [IpAddr; 2]) -> PairBuilder {
        let at = |ip: IpAddr, ports: &[SocketAddr]| -> Vec<SocketAddr> {
            ports.iter().map(|address| SocketAddr::new(ip, address.port())).collect()
        };
        self.naples_listens = at(naples, &self.naples_listens);
        self.act_listens = at(act, &self.act_listens);
        self.naples_connects = self.act_listens.clone();
        self.act_connects = self.naples_listens.clone();
        self
    }

    /// Both listen at these addresses too, Naples at the first, on the same ports.
    pub fn and_at(mut self, addresses: [IpAddr; 2]) -> PairBuilder {
        self.also = Some(addresses);
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
        let peer =
            |name: &str, remote: &[SocketAddr], listen: &[SocketAddr], also: Option<IpAddr>| {
                let ends = remote.iter().zip(listen).map(|(&remote, &listen)| {
                    let also = also.map(|ip| SocketAddr::new(ip, listen.port()));
                    ChannelAddresses {
                        remote,
                        listen: [Some(listen), also].into_iter().flatten().collect(),
                    }
                });
                PeerConfig { name: name.to_owned(), link: self.link.clone(), ends: ends.collect() }
            };
        let [naples_also, act_also] = self.also.map_or([None; 2], |also| also.map(Some));
        let of_naples = peer("act", &self.naples_connects, &self.naples_listens, naples_also);
        let of_act = peer("naples", &self.act_connects, &self.act_listens, act_also);
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
