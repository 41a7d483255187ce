//! Priority and the two indicator bit strings.

use crate::wire::{bits, tag, write_bits};
use base::ber::{Element, Error, Fault, Field, Tag, Writer};

/// Priority of a message (X.411 8.2.1.1.1.8). The numbers are not in order of urgency, so there is
/// no ordering here: see [`crate::grade`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Priority {
    /// normal, 0: also where the field is absent.
    #[default]
    Normal = 0,
    /// non-urgent, 1.
    NonUrgent = 1,
    /// urgent, 2.
    Urgent = 2,
}

/// PerMessageIndicators: named bits, bit `n` of the BIT STRING being `1 << n` here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerMessageIndicators(pub u32);

impl PerMessageIndicators {
    /// disclosure-of-other-recipients.
    pub const DISCLOSURE_OF_OTHER_RECIPIENTS: PerMessageIndicators = PerMessageIndicators(1);
    /// implicit-conversion-prohibited.
    pub const IMPLICIT_CONVERSION_PROHIBITED: PerMessageIndicators = PerMessageIndicators(1 << 1);
    /// alternate-recipient-allowed.
    pub const ALTERNATE_RECIPIENT_ALLOWED: PerMessageIndicators = PerMessageIndicators(1 << 2);
    /// content-return-request.
    pub const CONTENT_RETURN_REQUEST: PerMessageIndicators = PerMessageIndicators(1 << 3);
    /// service-message.
    pub const SERVICE_MESSAGE: PerMessageIndicators = PerMessageIndicators(1 << 7);

    /// Whether every bit of `other` is set.
    pub fn contains(self, other: PerMessageIndicators) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for PerMessageIndicators {
    type Output = PerMessageIndicators;
    fn bitor(self, other: PerMessageIndicators) -> PerMessageIndicators {
        PerMessageIndicators(self.0 | other.0)
    }
}

/// PerRecipientIndicators: who is responsible for a recipient, and which reports are asked for.
/// Bit `n` of the BIT STRING is `1 << n` here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerRecipientIndicators(pub u32);

/// The reports that an originator requests: OriginatorReportRequest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportRequest {
    /// no-report.
    #[default]
    None,
    /// non-delivery-report: of non-delivery only.
    NonDelivery,
    /// report: of delivery as well.
    Report,
}

/// The reports that the originating MTA requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MtaReportRequest {
    /// No bit set, which X.411 does not allow but peers send: read as non-delivery-report.
    #[default]
    Unset,
    /// non-delivery-report.
    NonDelivery,
    /// report: of delivery as well.
    Report,
    /// audited-report: of delivery as well, with all trace information.
    Audited,
}

impl PerRecipientIndicators {
    const RESPONSIBILITY: u32 = 1;

    /// Made of its parts.
    pub fn new(
        responsible: bool,
        mta: MtaReportRequest,
        originator: ReportRequest,
    ) -> PerRecipientIndicators {
        let mta = match mta {
            MtaReportRequest::Unset => 0,
            MtaReportRequest::Report => 0b01,
            MtaReportRequest::NonDelivery => 0b10,
            MtaReportRequest::Audited => 0b11,
        };
        let originator = match originator {
            ReportRequest::None => 0,
            ReportRequest::Report => 0b01,
            ReportRequest::NonDelivery => 0b10,
        };
        PerRecipientIndicators(u32::from(responsible) | mta << 1 | originator << 3)
    }

    /// responsibility (bit 0): whether the receiver of this copy is to serve this recipient.
    pub fn responsible(self) -> bool {
        self.0 & Self::RESPONSIBILITY != 0
    }

    /// The same with responsibility set or cleared.
    #[must_use]
    pub fn with_responsibility(self, responsible: bool) -> PerRecipientIndicators {
        PerRecipientIndicators(self.0 & !Self::RESPONSIBILITY | u32::from(responsible))
    }

    /// originating-MTA-report and -non-delivery-report (bits 1 and 2).
    pub fn mta_report(self) -> MtaReportRequest {
        match self.0 >> 1 & 3 {
            0 => MtaReportRequest::Unset,
            0b01 => MtaReportRequest::Report,
            0b10 => MtaReportRequest::NonDelivery,
            _ => MtaReportRequest::Audited,
        }
    }

    /// originator-report and -non-delivery-report (bits 3 and 4). Both set, which X.411 does not
    /// allow but peers send, is a report.
    pub fn originator_report(self) -> ReportRequest {
        match self.0 >> 3 & 3 {
            0 => ReportRequest::None,
            0b10 => ReportRequest::NonDelivery,
            _ => ReportRequest::Report,
        }
    }
}

impl Priority {
    /// Reads it, under whichever tag.
    ///
    /// # Errors
    /// A number X.411 does not give.
    pub fn read(e: &Element<'_>) -> Result<Priority, Error> {
        match e.integer().field("priority")? {
            0 => Ok(Priority::Normal),
            1 => Ok(Priority::NonUrgent),
            2 => Ok(Priority::Urgent),
            _ => Err(Fault::Value("Priority (X.411 8.2.1.1.1.8)")).field("priority"),
        }
    }

    /// Writes it.
    pub fn write(self, w: &mut Writer) {
        w.integer(tag::PRIORITY, i64::from(self as u8));
    }

    /// Lower-case name, as X.411 writes it.
    pub fn name(self) -> &'static str {
        match self {
            Priority::Normal => "normal",
            Priority::NonUrgent => "non-urgent",
            Priority::Urgent => "urgent",
        }
    }
}

impl PerMessageIndicators {
    /// Reads them, under whichever tag.
    ///
    /// # Errors
    /// A malformed BIT STRING.
    pub fn read(e: &Element<'_>) -> Result<PerMessageIndicators, Error> {
        Ok(PerMessageIndicators(bits(e).field("per-message-indicators")?))
    }

    /// Writes them, 8 bits.
    pub fn write(self, w: &mut Writer) {
        write_bits(w, tag::PER_MESSAGE_INDICATORS, self.0, 8);
    }
}

impl PerRecipientIndicators {
    /// Reads them, under whichever tag and of whichever length.
    ///
    /// # Errors
    /// A malformed BIT STRING.
    pub fn read(e: &Element<'_>) -> Result<PerRecipientIndicators, Error> {
        Ok(PerRecipientIndicators(bits(e).field("per-recipient-indicators")?))
    }

    /// Writes them under `tag`, the 8 bits X.411 asks for, more only where one of those is set.
    pub fn write_as(self, w: &mut Writer, tag: Tag) {
        write_bits(w, tag, self.0, 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_bits_are_read_and_eight_written() {
        let e = [0x81, 0x03, 0x07, 0xF0, 0x00];
        let i = PerRecipientIndicators::read(&Element::parse(&e).unwrap()).unwrap();
        assert!(i.responsible());
        assert_eq!(i.mta_report(), MtaReportRequest::Audited);
        assert_eq!(i.originator_report(), ReportRequest::Report);
        let mut w = Writer::new();
        i.with_responsibility(false).write_as(&mut w, Tag::context(1));
        assert_eq!(w.as_slice(), [0x81, 0x02, 0x00, 0x70]);
    }

    #[test]
    fn requests_round_trip() {
        for responsible in [false, true] {
            for mta in [
                MtaReportRequest::Unset,
                MtaReportRequest::NonDelivery,
                MtaReportRequest::Report,
                MtaReportRequest::Audited,
            ] {
                for originator in
                    [ReportRequest::None, ReportRequest::NonDelivery, ReportRequest::Report]
                {
                    let i = PerRecipientIndicators::new(responsible, mta, originator);
                    assert_eq!(
                        (i.responsible(), i.mta_report(), i.originator_report()),
                        (responsible, mta, originator)
                    );
                }
            }
        }
        // X.411: bit 3 asks for a report, bit 4 for one of non-delivery only.
        let ndr = PerRecipientIndicators(1 << 4);
        assert_eq!(ndr.originator_report(), ReportRequest::NonDelivery);
    }
}
