use super::bounds;
use super::compare::normalize;
use crate::text::Text;
use crate::wire::{next_string, tag, write_latin1};
use base::ber::{Element, Error, Field, Tag, Writer, universal};
use base::shown;
use std::fmt;

/// GlobalDomainIdentifier: a management domain (X.411 8.5.3).
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct GlobalDomainId {
    /// country-name.
    pub country: Text,
    /// administration-domain-name.
    pub admd: Text,
    /// private-domain-identifier.
    pub prmd: Option<Text>,
}

/// MTSIdentifier of a message, probe or report (X.411 8.5.1). Unique for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MtsIdentifier {
    /// The domain that made it.
    pub domain: GlobalDomainId,
    /// local-identifier, IA5, 1 to 32 characters.
    pub local: String,
}

/// MTAName: IA5, 1 to 32 characters (X.411 8.1.1.1.1.1).
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct MtaName(pub String);

impl GlobalDomainId {
    /// Of these names, as PrintableStrings.
    pub fn new(country: &str, admd: &str, prmd: Option<&str>) -> GlobalDomainId {
        GlobalDomainId { country: country.into(), admd: admd.into(), prmd: prmd.map(Text::from) }
    }

    /// Whether both name the same domain: case, surplus spaces and string types do not matter
    /// (X.402 18.4).
    pub fn same_as(&self, other: &GlobalDomainId) -> bool {
        self.key() == other.key()
    }

    /// Country, ADMD and PRMD in comparable form: equal where [`GlobalDomainId::same_as`].
    pub fn key(&self) -> (String, String, Option<String>) {
        (
            normalize(&self.country.value),
            normalize(&self.admd.value),
            self.prmd.as_ref().map(|p| normalize(&p.value)),
        )
    }

    /// Reads it, under whichever tag.
    ///
    /// # Errors
    /// Malformed, a name missing, or one with a control character or longer than X.411 has it.
    pub fn read(e: &Element<'_>) -> Result<GlobalDomainId, Error> {
        let name = "global-domain-identifier";
        let mut inner = e.children().field(name)?;
        let country = inner.require(tag::COUNTRY).field(name)?.only_child().field(name)?;
        let admd = inner.require(tag::ADMD).field(name)?.only_child().field(name)?;
        let prmd = inner.next().field(name)?.map(|p| Text::read(&p)).transpose().field(name)?;
        inner.finish().field(name)?;
        let country = Text::read(&country).field(name)?;
        let admd = Text::read(&admd).field(name)?;
        let domain = GlobalDomainId { country, admd, prmd };
        if !e.is_accepted() {
            bounds::domain(&domain)?;
        }
        Ok(domain)
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(tag::GLOBAL_DOMAIN, |w| {
            w.constructed(tag::COUNTRY, |w| self.country.write(w));
            w.constructed(tag::ADMD, |w| self.admd.write(w));
            if let Some(prmd) = &self.prmd {
                prmd.write(w);
            }
        });
    }
}

/// `/PRMD=../ADMD=../C=../`, as in RFC 2156.
impl fmt::Display for GlobalDomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(prmd) = &self.prmd {
            write!(f, "/PRMD={prmd}")?;
        }
        write!(f, "/ADMD={}/C={}/", self.admd, self.country)
    }
}

impl MtsIdentifier {
    /// Reads it, under whichever tag.
    ///
    /// # Errors
    /// Malformed, a part missing, or one with characters or of a length that X.411 does not have.
    pub fn read(e: &Element<'_>) -> Result<MtsIdentifier, Error> {
        let name = "mts-identifier";
        let mut inner = e.children().field(name)?;
        let domain = GlobalDomainId::read(&inner.require(tag::GLOBAL_DOMAIN).field(name)?)?;
        let local = bounds::local_identifier(&next_string(&mut inner).field(name)?)?;
        inner.finish().field(name)?;
        Ok(MtsIdentifier { domain, local })
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(tag::MTS_IDENTIFIER, |w| {
            self.domain.write(w);
            write_latin1(w, universal::IA5_STRING, &self.local);
        });
    }

    /// Whether both identify the same message: the domains the same, the local parts equal.
    pub fn same_as(&self, other: &MtsIdentifier) -> bool {
        self.local == other.local && self.domain.same_as(&other.domain)
    }
}

/// `[/PRMD=../ADMD=../C=../;local]`, as in RFC 2156.
impl fmt::Display for MtsIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{};{}]", self.domain, shown::line(&self.local))
    }
}

impl MtaName {
    /// Reads it, under whichever tag.
    ///
    /// # Errors
    /// A malformed string, or one with characters or of a length that X.411 does not have.
    pub fn read(e: &Element<'_>) -> Result<MtaName, Error> {
        bounds::mta_name(e).map(MtaName)
    }

    /// Writes it under `tag`.
    pub fn write_as(&self, w: &mut Writer, tag: Tag) {
        write_latin1(w, tag, &self.0);
    }

    /// Whether both name the same MTA: case and surplus spaces do not matter.
    pub fn same_as(&self, other: &MtaName) -> bool {
        normalize(&self.0) == normalize(&other.0)
    }
}

impl From<&str> for MtaName {
    fn from(name: &str) -> MtaName {
        MtaName(name.to_owned())
    }
}

impl fmt::Display for MtaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown::line(&self.0))
    }
}
