use super::{ORAddress, ORName, address::extension_attribute as ext};

/// A string in comparable form (X.402 18.4): lower case, without leading, trailing and repeated
/// spaces.
pub fn normalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out
}

/// Which attribute of an O/R address, ordered from the top of the hierarchy down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// country-name.
    Country,
    /// administration-domain-name.
    Admd,
    /// private-domain-name.
    Prmd,
    /// organization-name.
    Organization,
    /// organizational-unit-name, counted from 0 at the top.
    OrganizationalUnit(usize),
    /// personal-name: surname.
    Surname,
    /// personal-name: given-name.
    GivenName,
    /// personal-name: initials.
    Initials,
    /// personal-name: generation-qualifier.
    GenerationQualifier,
    /// common-name.
    CommonName,
    /// network-address.
    NetworkAddress,
    /// terminal-identifier.
    TerminalIdentifier,
    /// numeric-user-identifier.
    NumericUserIdentifier,
    /// A domain-defined attribute, by its type in comparable form.
    DomainDefined(String),
    /// Another extension attribute, by number: compared octet by octet.
    Extension(i64),
}

impl ORAddress {
    /// The attributes in comparable form, sorted: two addresses are the same where these are.
    ///
    /// Printable and teletex forms of one attribute count as one; where both are given, the printable
    /// one does. An ADMD of a single space means any or none, so it is left out.
    pub fn attributes(&self) -> Vec<(Attribute, String)> {
        let mut all = Vec::new();
        let mut put = |attribute, value: Option<&str>| {
            if let Some(value) = value {
                all.push((attribute, normalize(value)));
            }
        };
        let text = |t: &'_ Option<crate::Text>| t.as_ref().map(|t| t.value.clone());
        put(Attribute::Country, text(&self.country).as_deref());
        put(Attribute::Admd, text(&self.admd).as_deref().filter(|a| !normalize(a).is_empty()));
        put(Attribute::Prmd, text(&self.prmd).as_deref());
        let teletex = self.extension_text(ext::TELETEX_ORGANIZATION_NAME);
        put(Attribute::Organization, self.organization.as_deref().or(teletex.as_deref()));
        for (n, unit) in self.units().iter().enumerate() {
            put(Attribute::OrganizationalUnit(n), Some(unit));
        }
        if let Some(name) = self.name_of_person() {
            put(Attribute::Surname, Some(&name.surname));
            put(Attribute::GivenName, name.given_name.as_deref());
            put(Attribute::Initials, name.initials.as_deref());
            put(Attribute::GenerationQualifier, name.generation_qualifier.as_deref());
        }
        put(Attribute::CommonName, self.common_name().as_deref());
        put(Attribute::NetworkAddress, self.network_address.as_deref());
        put(Attribute::TerminalIdentifier, self.terminal_identifier.as_deref());
        put(Attribute::NumericUserIdentifier, self.numeric_user_identifier.as_deref());
        for pair in &self.domain_defined {
            put(Attribute::DomainDefined(normalize(&pair.kind)), Some(&pair.value));
        }
        let folded = ext::COMMON_NAME..=ext::TELETEX_ORGANIZATIONAL_UNIT_NAMES;
        for other in self.extensions.iter().filter(|a| !folded.contains(&a.number)) {
            let octets = other.value.iter().map(|b| char::from(*b)).collect();
            all.push((Attribute::Extension(other.number), octets));
        }
        all.sort();
        all
    }

    /// Whether both are the same address (X.402 18.4).
    pub fn same_as(&self, other: &ORAddress) -> bool {
        self.attributes() == other.attributes()
    }

    /// How many attributes `pattern` gives, where this address has them all with the same values; so
    /// of several patterns that match, the one with the highest number is the closest.
    pub fn matches(&self, pattern: &ORAddress) -> Option<usize> {
        let (ours, asked) = (self.attributes(), pattern.attributes());
        asked.iter().all(|a| ours.binary_search(a).is_ok()).then_some(asked.len())
    }
}

impl ORName {
    /// Whether both have the same O/R address. The directory name is not looked at: an MTA that
    /// transfers routes on the address alone.
    pub fn same_as(&self, other: &ORName) -> bool {
        self.address.same_as(&other.address)
    }
}
