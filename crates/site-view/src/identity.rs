//! Whose database it is: the MTA and the domain of a site, recorded by the first node that joins.

use std::fmt;

/// The value of the site that has it.
pub const IDENTITY: &str = "site-identity";

/// Between the name and the domain.
const BETWEEN: &str = " in ";

/// One MTA to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub mta: String,
    /// Its global domain, as in `/PRMD=HQ/ADMD=NET/C=IT/`.
    pub domain: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{BETWEEN}{}", self.mta, self.domain)
    }
}

/// The database is another site's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this configuration is of {own}, and the database has the queue of {recorded}: correct name and domain in [mta], or \
     url and schema in [store]. If the site is to have another name, stop its nodes, and start one with the new name \
     once without [cluster]"
)]
pub struct OtherSite {
    /// What the configuration has.
    own: String,
    /// What was recorded.
    recorded: String,
}

impl Identity {
    /// Whether what was recorded is this one.
    ///
    /// # Errors
    /// [`OtherSite`].
    pub fn compare(&self, recorded: &[u8]) -> Result<(), OtherSite> {
        let own = self.to_string();
        // Names are compared without case, as everywhere in X.400.
        if recorded.eq_ignore_ascii_case(own.as_bytes()) {
            return Ok(());
        }
        Err(OtherSite { own, recorded: String::from_utf8_lossy(recorded).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_or_domain_is_another_site() {
        let of = |mta: &str, domain: &str| Identity { mta: mta.into(), domain: domain.into() };
        let own = of("MTA-HQ", "/ADMD=NET/C=IT/");
        assert_eq!(own.compare(own.to_string().as_bytes()), Ok(()));
        assert_eq!(own.compare(b"mta-hq in /ADMD=Net/C=IT/"), Ok(()));
        for other in [of("MTA-WEST", "/ADMD=NET/C=IT/"), of("MTA-HQ", "/ADMD=NET/C=FR/")] {
            let error = own.compare(other.to_string().as_bytes()).unwrap_err().to_string();
            assert!(error.contains(&format!("has the queue of {other}:")), "{error}");
        }
    }
}
