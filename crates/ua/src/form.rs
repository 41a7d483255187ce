//! Text forms of what a heading has: times, identifiers, recipients and their requests. What is shown
//! is also what is accepted.

use base::time::Civil;
use base::{Utc, quantity};
use p1::flags::ReportRequest;
use p1::names::ORName;
use p772::{Acp127Notifications, IpmIdentifier, NotificationRequests};

/// Why a text is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// Not a time.
    #[error(
        "invalid time {0:?}: write 260504030201Z, 040302ZMAY26, 2026-05-04T03:02:01Z, or +2h from now"
    )]
    Time(String),
    /// A time before 1950 or after 2049, which UTCTime cannot express.
    #[error("{0:?} is not between 1950 and 2049: a UTCTime has two digits for the year")]
    Year(String),
    /// Not an O/R address.
    #[error("{text:?}: invalid O/R address: {error}")]
    Address {
        /// The text.
        text: String,
        /// What is wrong with it.
        error: String,
    },
    /// An unknown request.
    #[error(
        "unknown request {0:?}: use rn, nrn, return, reply, report=none, report=non-delivery, \
         report=delivery, acp127-positive, acp127-negative, acp127-transfer"
    )]
    Request(String),
    /// A bracket is missing.
    #[error("{0:?} has no closing bracket: write ADDRESS[rn,nrn]")]
    Bracket(String),
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// Longest time from now: as long as X.411 lets a message wait, and more.
const MAX_AHEAD_DAYS: u64 = 3_660;

/// Reads a time: UTCTime (`260504030201Z`), a military date-time group (`040302ZMAY26`), RFC 3339
/// (`2026-05-04T03:02:01Z`, the seconds optional), or a time from `now` (`+30min`, `+2h`, `+3d`).
///
/// # Errors
/// None of these, or a year that UTCTime cannot express.
pub fn time(text: &str, now: Utc) -> Result<Utc, FormError> {
    let wrong = || FormError::Time(text.to_owned());
    let trimmed = text.trim();
    let read = match trimmed.strip_prefix('+') {
        Some(ahead) => Some(now + duration(ahead).ok_or_else(wrong)?),
        None => Utc::from_utc_time(trimmed.as_bytes())
            .or_else(|| military_time(trimmed))
            .or_else(|| rfc3339(trimmed)),
    };
    let time = read.ok_or_else(wrong)?;
    let year = time.civil().year;
    // Only whole seconds pass.
    let time = Utc(time.0 / 1_000_000 * 1_000_000);
    if year > 2049 { Err(FormError::Year(text.to_owned())) } else { Ok(time) }
}

/// A time from now: as [`quantity::duration`] reads it, or in days.
fn duration(text: &str) -> Option<std::time::Duration> {
    let read = match text.trim().strip_suffix('d') {
        Some(days) => {
            let days = days.trim().parse::<u64>().ok()?;
            std::time::Duration::from_secs(days.checked_mul(86_400)?)
        }
        None => quantity::duration(text).ok()?,
    };
    (read.as_secs() <= MAX_AHEAD_DAYS * 86_400).then_some(read)
}

fn number(text: Option<&str>) -> Option<u32> {
    text.filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

/// `DDhhmmZMONYY`.
fn military_time(text: &str) -> Option<Utc> {
    let text = text.to_ascii_uppercase();
    if text.len() != 12 || text.get(6..7) != Some("Z") {
        return None;
    }
    let month = text.get(7..10).and_then(|name| MONTHS.iter().position(|m| *m == name))?;
    let year = number(text.get(10..12))?;
    Utc::from_civil(Civil {
        year: if year >= 50 { 1900 + year } else { 2000 + year },
        month: u32::try_from(month).ok()? + 1,
        day: number(text.get(0..2))?,
        hour: number(text.get(2..4))?,
        minute: number(text.get(4..6))?,
        second: 0,
    })
}

/// `YYYY-MM-DDThh:mm[:ss]Z`.
fn rfc3339(text: &str) -> Option<Utc> {
    let rest = text.strip_suffix(['Z', 'z'])?;
    let (date, time) = rest.split_once(['T', 't', ' '])?;
    let (mut date, mut time) = (date.split('-'), time.split(':'));
    let civil = Civil {
        year: number(date.next())?,
        month: number(date.next())?,
        day: number(date.next())?,
        hour: number(time.next())?,
        minute: number(time.next())?,
        second: time.next().map_or(Some(0), |second| number(Some(second)))?,
    };
    if date.next().is_some() || time.next().is_some() { None } else { Utc::from_civil(civil) }
}

/// A military date-time group, `040302ZMAY26`: minutes.
pub fn date_time_group(time: Utc) -> String {
    let c = time.civil();
    let month = (c.month as usize).checked_sub(1).and_then(|m| MONTHS.get(m)).unwrap_or(&"");
    format!("{:02}{:02}{:02}Z{month}{:02}", c.day, c.hour, c.minute, c.year % 100)
}

/// Reads an O/R address, in either form.
///
/// # Errors
/// [`FormError::Address`].
pub fn address(text: &str) -> Result<ORName, FormError> {
    text.parse::<ORName>().map_err(|error| {
        let (text, error) = (text.to_owned(), error.to_string());
        FormError::Address { text, error }
    })
}

/// An IPM identifier as `LOCAL*ADDRESS` (RFC 2156 4.7.3.4 has this form), without a user `LOCAL`.
pub fn show_ipm(ipm: &IpmIdentifier) -> String {
    match &ipm.user {
        Some(user) => format!("{}*{}", ipm.local, user.address),
        None => ipm.local.clone(),
    }
}

/// Reads `LOCAL*ADDRESS` or `LOCAL`.
///
/// # Errors
/// [`FormError::Address`].
pub fn ipm(text: &str) -> Result<IpmIdentifier, FormError> {
    match text.split_once('*') {
        Some((local, user)) => {
            Ok(IpmIdentifier { user: Some(address(user)?), local: local.trim().to_owned() })
        }
        None => Ok(IpmIdentifier { user: None, local: text.trim().to_owned() }),
    }
}

/// What is asked of one recipient, and of the MTS about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Notifications of receipt and non-receipt.
    pub notifications: NotificationRequests,
    /// A reply.
    pub reply: bool,
    /// What a gateway to ACP 127 is to notify.
    pub acp127: Option<Acp127Notifications>,
    /// The report, if another than the message's.
    pub report: Option<ReportRequest>,
}

impl Requests {
    /// Adds one request, by its name.
    ///
    /// # Errors
    /// [`FormError::Request`].
    pub fn add(&mut self, name: &str) -> Result<(), FormError> {
        let acp127 = |requests: &mut Requests| *requests.acp127.get_or_insert_default();
        match name.trim().to_ascii_lowercase().as_str() {
            "rn" => self.notifications.receipt = true,
            "nrn" => self.notifications.non_receipt = true,
            "return" => self.notifications.return_content = true,
            "reply" => self.reply = true,
            "report=none" => self.report = Some(ReportRequest::None),
            "report=non-delivery" => self.report = Some(ReportRequest::NonDelivery),
            "report=delivery" => self.report = Some(ReportRequest::Report),
            "acp127-positive" => {
                self.acp127 = Some(Acp127Notifications { positive: true, ..acp127(self) });
            }
            "acp127-negative" => {
                self.acp127 = Some(Acp127Notifications { negative: true, ..acp127(self) });
            }
            "acp127-transfer" => {
                self.acp127 = Some(Acp127Notifications { transfer: true, ..acp127(self) });
            }
            _ => return Err(FormError::Request(name.to_owned())),
        }
        Ok(())
    }

    /// The names of the requests that a heading has.
    pub fn names(&self) -> Vec<&'static str> {
        let asked = self.notifications;
        let acp127 = self.acp127.unwrap_or_default();
        [
            (asked.receipt, "rn"),
            (asked.non_receipt, "nrn"),
            (asked.return_content, "return"),
            (self.reply, "reply"),
            (acp127.positive, "acp127-positive"),
            (acp127.negative, "acp127-negative"),
            (acp127.transfer, "acp127-transfer"),
        ]
        .into_iter()
        .filter_map(|(is_asked, name)| is_asked.then_some(name))
        .collect()
    }
}

/// The words in brackets at the end of a text, such as requests: `ops[rn,nrn]`. No O/R address that
/// PrintableString can express ends in a bracket.
///
/// # Errors
/// [`FormError::Bracket`].
pub fn bracketed(text: &str) -> Result<(&str, Vec<&str>), FormError> {
    let text = text.trim();
    let Some(rest) = text.strip_suffix(']') else {
        let open = text.contains('[');
        return if open {
            Err(FormError::Bracket(text.to_owned()))
        } else {
            Ok((text, Vec::new()))
        };
    };
    let Some((before, inside)) = rest.rsplit_once('[') else {
        return Err(FormError::Bracket(text.to_owned()));
    };
    let words = inside.split(',').map(str::trim).filter(|word| !word.is_empty());
    Ok((before.trim(), words.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_four_forms() {
        let now = Utc::from_utc_time(b"260504030201Z").unwrap();
        for text in [
            "260504030201Z",
            "2026-05-04T03:02:01Z",
            "2026-05-04 03:02:01z",
            "+0s",
            " 260504030201Z",
        ] {
            assert_eq!(time(text, now), Ok(now), "{text}");
        }
        let minute = Utc::from_utc_time(b"260504030200Z").unwrap();
        assert_eq!(time("040302ZMAY26", now), Ok(minute));
        assert_eq!(time("040302zmay26", now), Ok(minute));
        assert_eq!(time("2026-05-04T03:02Z", now), Ok(minute));
        assert_eq!(date_time_group(now), "040302ZMAY26");
        assert_eq!(time("+2d", now).unwrap().to_utc_time(), "260506030201Z");
        assert_eq!(time("+2h", now).unwrap().to_utc_time(), "260504050201Z");
        for bad in ["", "now", "320302ZMAY26", "+", "+9999999d", "2026-05-04", "2026-05-04T03Z"] {
            assert!(matches!(time(bad, now), Err(FormError::Time(_))), "{bad}");
        }
        assert!(matches!(time("2050-01-01T00:00Z", now), Err(FormError::Year(_))));
    }

    #[test]
    fn identifiers_and_requests_come_back() {
        let text = "M 1*/S=OPS/PRMD=ACT/C=XX";
        assert_eq!(show_ipm(&ipm(text).unwrap()), text);
        assert_eq!(show_ipm(&ipm("M1").unwrap()), "M1");
        assert!(ipm("M1*/X=1").unwrap_err().to_string().contains("invalid O/R address"));
        let (before, words) = bracketed("ops [rn, NRN,return,reply,acp127-transfer]").unwrap();
        assert_eq!(before, "ops");
        let mut requests = Requests::default();
        words.iter().for_each(|word| requests.add(word).unwrap());
        assert_eq!(requests.names(), ["rn", "nrn", "return", "reply", "acp127-transfer"]);
        requests.add("report=delivery").unwrap();
        assert_eq!(requests.report, Some(ReportRequest::Report));
        assert!(requests.add("receipt").unwrap_err().to_string().contains("use rn, nrn"));
        assert!(bracketed("ops[rn").is_err() && bracketed("ops]").is_err());
        assert_eq!(bracketed("ops"), Ok(("ops", vec![])));
    }
}
