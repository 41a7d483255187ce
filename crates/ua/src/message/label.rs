//! The security label of what is submitted: one that the user names, else that of the login.

use p1::SecurityLabel;
use p1::extension::{Criticality, ExtensionField, Extensions, number};

/// message-security-label (X.411 8.2.1.1.1.30), critical for delivery.
pub fn field(label: &SecurityLabel) -> ExtensionField {
    let critical = Criticality { for_delivery: true, ..Criticality::default() };
    ExtensionField::standard(number::MESSAGE_SECURITY_LABEL, critical, |w| {
        label.write(w, base::ber::universal::SET);
    })
}

/// Adds the login's label to an envelope without one.
pub(crate) fn complete(extensions: &mut Extensions, label: Option<&SecurityLabel>) {
    if let Some(label) = label
        && extensions.standard(number::MESSAGE_SECURITY_LABEL).is_none()
    {
        extensions.0.push(field(label));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_keeps_the_label_that_it_has() {
        let [own, other] =
            ["/secret", "/restricted"].map(|text| text.parse::<SecurityLabel>().unwrap());
        let mut extensions = Extensions::default();
        complete(&mut extensions, None);
        assert!(extensions.0.is_empty());
        complete(&mut extensions, Some(&own));
        complete(&mut extensions, Some(&other));
        assert_eq!(extensions.0, [field(&own)]);
    }
}
