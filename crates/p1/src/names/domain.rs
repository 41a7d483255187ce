use crate::text::Text;

/// GlobalDomainIdentifier: a management domain (X.411 8.5.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MtaName(pub String);
