//! MS-bind: how a user opens an association with its store (X.413 clause 7).
//!
//! The ROSE frame (argument 16, result 17, error 18) belongs to the layer below, as for P3.

mod result;

pub use result::{AutoActionErrorIndication, MsBindResult, MsBindResult1994};

use crate::extension::{self, MsExtension};
use crate::named::named_numbers;
use crate::registration::number;
use crate::wire::{self, GENERAL_STRING, explicit, require};
use base::ber::{
    Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_distinct_set, universal as u,
};
use bytes::Bytes;
use p1::wire::{keep, write_latin1};
use p1::{Credentials, ORName};

/// Restrictions: what the store does not return by fetch and list on this association. Absent lists
/// restrict nothing; so do empty ones, which the standard does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// allowed-content-types.
    pub allowed_content_types: Vec<Oid>,
    /// allowed-EITs.
    pub allowed_eits: Vec<Oid>,
    /// maximum-attribute-length, octets.
    pub maximum_attribute_length: Option<i64>,
}

/// MSBindArgument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsBindArgument {
    /// initiator-name.
    pub initiator_name: ORName,
    /// initiator-credentials.
    pub initiator_credentials: Credentials,
    /// security-context: the whole element. The one implicit tag of the module.
    pub security_context: Option<Bytes>,
    /// fetch-restrictions.
    pub fetch_restrictions: Option<Restrictions>,
    /// ms-configuration-request: whether the result states what the store can do.
    pub ms_configuration_request: bool,
    /// ua-registration-identifier (1994).
    pub ua_registration_identifier: Option<String>,
    /// bind-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

named_numbers! {
    /// BindProblem. The numbers are not those of MTSBindError.
    BindProblem {
        /// Name or credentials are wrong.
        AUTHENTICATION_ERROR = 0 "authentication-error";
        /// The security-context is not acceptable.
        UNACCEPTABLE_SECURITY_CONTEXT = 1 "unacceptable-security-context";
        /// The store cannot serve the user now.
        UNABLE_TO_ESTABLISH_ASSOCIATION = 2 "unable-to-establish-association";
        /// An extension cannot be satisfied (1994).
        BIND_EXTENSION_PROBLEM = 3 "bind-extension-problem";
        /// The connection below is not confidential enough (1994).
        INADEQUATE_ASSOCIATION_CONFIDENTIALITY = 4 "inadequate-association-confidentiality";
    }
}

/// MS-bind-error. The bare form is that of 1988.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MsBindError {
    /// unqualified-error.
    Unqualified(BindProblem),
    /// qualified-error (1994).
    Qualified {
        /// bind-problem.
        problem: BindProblem,
        /// supplementary-information.
        information: Option<String>,
        /// bind-extension-errors.
        extension_errors: Vec<Oid>,
    },
}

const CREDENTIALS: Tag = Tag::context(2);
const SECURITY_CONTEXT: Tag = Tag::context(3);
const FETCH_RESTRICTIONS: Tag = Tag::context(4);
const CONFIGURATION_REQUEST: Tag = Tag::context(5);
const UA_REGISTRATION: Tag = Tag::context(6);
const BIND_EXTENSIONS: Tag = Tag::context(7);

fn read_credentials(e: &Element<'_>) -> Result<Credentials, Error> {
    Credentials::read(&e.only_child()?)
}

fn write_credentials(w: &mut Writer, credentials: &Credentials) {
    explicit(w, 2, |w| p1::wire::encode(w, credentials));
}

impl Restrictions {
    fn read(e: &Element<'_>) -> Result<Restrictions, Error> {
        let mut types = Member::new("allowed-content-types");
        let mut eits = Member::new("allowed-EITs");
        let mut length = Member::new("maximum-attribute-length");
        read_distinct_set(&wire::inner(e, u::SET)?, |m| match number(m) {
            0 => types.once(m, |m| wire::oids(m, u::SET)),
            1 => eits.once(m, |m| wire::oids(m, u::SET)),
            2 => length.once(m, wire::integer),
            _ => Ok(false),
        })?;
        Ok(Restrictions {
            allowed_content_types: types.or_default(),
            allowed_eits: eits.or_default(),
            maximum_attribute_length: length.optional(),
        })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_oids(w, 0, u::SET, &self.allowed_content_types);
            wire::write_oids(w, 1, u::SET, &self.allowed_eits);
            if let Some(length) = self.maximum_attribute_length {
                wire::write_integer(w, 2, length);
            }
        });
    }
}

impl MsBindArgument {
    /// A bind of this name and these credentials, and nothing else.
    pub fn new(initiator_name: ORName, initiator_credentials: Credentials) -> MsBindArgument {
        MsBindArgument {
            initiator_name,
            initiator_credentials,
            security_context: None,
            fetch_restrictions: None,
            ms_configuration_request: false,
            ua_registration_identifier: None,
            extensions: Vec::new(),
        }
    }

    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no name or credentials; the field is named.
    pub fn read(e: &Element<'_>) -> Result<MsBindArgument, Error> {
        let (mut name, mut credentials) =
            (Member::new("initiator-name"), Member::new("initiator-credentials"));
        let (mut context, mut restrictions) =
            (Member::new("security-context"), Member::new("fetch-restrictions"));
        let (mut configuration, mut registration) =
            (Member::new("ms-configuration-request"), Member::new("ua-registration-identifier"));
        let mut extensions = Member::new("bind-extensions");
        let set = require(e, u::SET).field("MSBindArgument")?;
        let members = read_distinct_set(set, |m| match m.tag {
            p1::wire::tag::OR_NAME => name.once(m, ORName::read),
            CREDENTIALS => credentials.once(m, read_credentials),
            SECURITY_CONTEXT => context.once(m, |m| Ok(keep(m))),
            FETCH_RESTRICTIONS => restrictions.once(m, Restrictions::read),
            CONFIGURATION_REQUEST => configuration.once(m, wire::boolean),
            UA_REGISTRATION => registration.once(m, |m| wire::text(m, u::PRINTABLE_STRING)),
            BIND_EXTENSIONS => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("MSBindArgument")?;
        Ok(MsBindArgument {
            initiator_name: name.required(p1::wire::tag::OR_NAME)?,
            initiator_credentials: credentials.required(CREDENTIALS)?,
            security_context: context.optional(),
            fetch_restrictions: restrictions.optional(),
            ms_configuration_request: configuration.or_default(),
            ua_registration_identifier: registration.optional(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.initiator_name.write(w);
            write_credentials(w, &self.initiator_credentials);
            if let Some(context) = &self.security_context {
                w.raw(context);
            }
            if let Some(restrictions) = &self.fetch_restrictions {
                explicit(w, 4, |w| restrictions.write(w));
            }
            wire::write_boolean(w, 5, self.ms_configuration_request, false);
            if let Some(identifier) = &self.ua_registration_identifier {
                wire::write_text(w, 6, u::PRINTABLE_STRING, identifier);
            }
            extension::write_all(w, 7, &self.extensions);
        });
    }
}

impl MsBindError {
    /// The problem, in either form.
    pub fn problem(&self) -> BindProblem {
        match self {
            MsBindError::Unqualified(problem) | MsBindError::Qualified { problem, .. } => *problem,
        }
    }

    /// Reads either form.
    ///
    /// # Errors
    /// Malformed BER, or no problem; the field is named.
    pub fn read(e: &Element<'_>) -> Result<MsBindError, Error> {
        match e.tag {
            u::ENUMERATED => {
                let problem = e.integer().field("bind-problem")?;
                Ok(MsBindError::Unqualified(BindProblem(problem)))
            }
            u::SET => read_qualified(e).field("qualified-error"),
            other => Err(Fault::Unexpected(other)).field("MS-bind-error"),
        }
    }

    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        match self {
            MsBindError::Unqualified(problem) => w.integer(u::ENUMERATED, problem.0),
            MsBindError::Qualified { problem, information, extension_errors } => {
                w.constructed(u::SET, |w| {
                    explicit(w, 0, |w| w.integer(u::ENUMERATED, problem.0));
                    if let Some(information) = information {
                        explicit(w, 1, |w| write_latin1(w, GENERAL_STRING, information));
                    }
                    wire::write_oids(w, 2, u::SET, extension_errors);
                });
            }
        }
    }
}

fn read_qualified(e: &Element<'_>) -> Result<MsBindError, Error> {
    let mut problem = Member::new("bind-problem");
    let mut information = Member::new("supplementary-information");
    let mut errors = Member::new("bind-extension-errors");
    read_distinct_set(e, |m| match number(m) {
        0 => problem.once(m, |m| wire::inner(m, u::ENUMERATED)?.integer().map(BindProblem)),
        1 => information.once(m, |m| wire::text(m, GENERAL_STRING)),
        2 => errors.once(m, |m| wire::oids(m, u::SET)),
        _ => Ok(false),
    })?;
    Ok(MsBindError::Qualified {
        problem: problem.required(Tag::context(0))?,
        information: information.optional(),
        extension_errors: errors.or_default(),
    })
}

/// The name of the problem.
impl std::fmt::Display for MsBindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.problem().fmt(f)
    }
}
